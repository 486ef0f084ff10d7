package httpstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/sign"
)

func TestFromEnv(t *testing.T) {
	key, err := sign.NewKey()
	require.NoError(t, err)
	secret := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(secret, []byte(sign.FormatSecret(key)), 0o600))
	require.NoError(t, os.WriteFile(secret+".pub", []byte(sign.FormatPublic(sign.Public(key))), 0o644))
	from := func(address, path string) (sends, trusts bool, err error) {
		env := map[string]string{EnvURL: address, EnvKey: path}
		shared, err := FromEnv(func(name string) string { return env[name] })
		if shared == nil {
			return false, false, err
		}
		return shared.Key.Equal(key), shared.Trusted[0].Equal(sign.Public(key)), err
	}
	const address = "http://cache.example"
	sends, trusts, err := from(address, secret)
	assert.True(t, sends && trusts && err == nil)
	sends, trusts, err = from(address, secret+".pub")
	assert.True(t, !sends && trusts && err == nil)
	_, trusts, err = from("", secret)
	assert.True(t, !trusts && err == nil, "no store is named")
	for _, bad := range [][2]string{{address, ""}, {address, secret + ".none"}, {"cache.example", secret}} {
		_, trusts, err := from(bad[0], bad[1])
		assert.False(t, trusts)
		assert.ErrorContains(t, err, "FUSEC_SHARED")
	}
	require.NoError(t, os.Chmod(secret, 0o644))
	_, _, err = from(address, secret)
	assert.ErrorContains(t, err, "others can read the secret key")
}
