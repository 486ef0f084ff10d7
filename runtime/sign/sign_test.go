package sign

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newKey(t *testing.T) ed25519.PrivateKey {
	key, err := NewKey()
	require.NoError(t, err)
	return key
}

func TestKeysReadBack(t *testing.T) {
	key := newKey(t)
	secret, err := ParseSecret(FormatSecret(key))
	require.NoError(t, err)
	assert.Equal(t, key, secret)
	public, err := ParsePublic(FormatPublic(Public(key)))
	require.NoError(t, err)
	assert.Equal(t, Public(key), public)
}

func TestMalformedKeysAreNotShown(t *testing.T) {
	key := newKey(t)
	secret := FormatSecret(key)
	for name, text := range map[string]string{
		"empty": "", "one word": secretWord, "short": secretWord + " QUJD", "no base 64": secretWord + " ????",
		"public": FormatPublic(Public(key)), "more": secret + " x",
	} {
		_, err := ParseSecret(text)
		assert.Error(t, err, name)
		assert.NotContains(t, err.Error(), "QUJD")
	}
	_, err := ParsePublic(secret)
	assert.ErrorContains(t, err, "found a fusec-secret-ed25519")
	assert.NotContains(t, err.Error(), secret[len(secretWord)+1:])
}

// FuzzKeys: what is read as a key is spelled again in the one way, and nothing panics; the
// text of what is refused is not shown.
func FuzzKeys(f *testing.F) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	f.Add(FormatSecret(key))
	f.Add(FormatPublic(Public(key)))
	f.Add(publicWord + " QUJD")
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := ParseSecret(text)
		if err == nil {
			again, err := ParseSecret(FormatSecret(secret))
			require.NoError(t, err)
			require.Equal(t, secret, again)
			seal := Seal(secret, "test", []byte(text))
			require.NoError(t, Check([]ed25519.PublicKey{Public(secret)}, "test", []byte(text), seal))
		}
		public, err := ParsePublic(text)
		if err == nil {
			again, err := ParsePublic(FormatPublic(public))
			require.NoError(t, err)
			require.Equal(t, public, again)
		}
		// A list of keys of any lengths, and a seal of any length, are answered.
		keys := []ed25519.PublicKey{[]byte(text), public}
		require.Error(t, Check(keys, "test", nil, []byte(text)))
		id := ID([]byte(text))
		require.Error(t, Check(keys, "test", nil, append(id[:], make([]byte, SignatureSize)...)))
	})
}

func TestOnlyShortRegularFilesAreKeys(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	require.NoError(t, os.WriteFile(long, nil, 0o600))
	require.NoError(t, os.Truncate(long, 1<<40)) // takes no room
	for _, path := range []string{long, "/dev/zero", t.TempDir()} {
		_, err := ReadPublic(path)
		assert.Error(t, err, path)
		_, err = ReadSecret(path)
		assert.Error(t, err, path)
		_, err = IsSecret(path)
		assert.Error(t, err, path)
	}
}

func TestKeyFiles(t *testing.T) {
	key, dir := newKey(t), t.TempDir()
	secret, public := filepath.Join(dir, "k"), filepath.Join(dir, "k.pub")
	require.NoError(t, os.WriteFile(secret, []byte(FormatSecret(key)), 0o600))
	require.NoError(t, os.WriteFile(public, []byte(FormatPublic(Public(key))), 0o644))
	got, err := ReadSecret(secret)
	require.NoError(t, err)
	assert.Equal(t, key, got)
	for path, want := range map[string]bool{secret: true, public: false} {
		is, err := IsSecret(path)
		require.NoError(t, err)
		assert.Equal(t, want, is)
	}
	for _, path := range []string{secret, public} {
		got, err := ReadPublic(path)
		require.NoError(t, err)
		assert.Equal(t, Public(key), got)
	}
	require.NoError(t, os.Chmod(secret, 0o640))
	_, err = ReadSecret(secret)
	assert.ErrorContains(t, err, "others can read")
	require.NoError(t, os.Chmod(public, 0o600))
	_, err = ReadSecret(public)
	assert.ErrorContains(t, err, public)
	_, err = ReadPublic(filepath.Join(dir, "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestSeals(t *testing.T) {
	key, other := newKey(t), newKey(t)
	keys := []ed25519.PublicKey{Public(other), Public(key)}
	seal := Seal(key, "test", []byte("message"))
	assert.NoError(t, Check(keys, "test", []byte("message"), seal))
	assert.ErrorIs(t, Check(keys, "tes", []byte("message"), seal), ErrSignature)
	assert.ErrorIs(t, Check(keys, "test", []byte("massage"), seal), ErrSignature)
	assert.ErrorIs(t, Check(keys[:1], "test", []byte("message"), seal), ErrForeignKey)
	assert.ErrorIs(t, Check(nil, "test", []byte("message"), seal), ErrForeignKey)
	for i := range seal {
		bad := append([]byte(nil), seal...)
		bad[i] ^= 1
		assert.Error(t, Check(keys, "test", []byte("message"), bad), "byte %d", i)
		assert.Error(t, Check(keys, "test", []byte("message"), seal[:i]), "%d bytes", i)
	}
}
