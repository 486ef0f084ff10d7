package bundle

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/internal/fuzztest"
	"github.com/fusec/fusec/runtime/sign"
)

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func write(t require.TestingT, sections []Section) []byte {
	var b bytes.Buffer
	require.NoError(t, Write(&b, sections, key(1)))
	return b.Bytes()
}

func small(t require.TestingT) []byte {
	return write(t, []Section{{"b", []byte("two")}, {"a", []byte("one")}, {"c", []byte("two")}, {"empty", nil}})
}

var public = sign.Public(key(1))

func TestSectionsReadBack(t *testing.T) {
	data := small(t)
	path := filepath.Join(t.TempDir(), "x.fbundle")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	file, err := OpenFile(path, sign.Public(key(2)), public)
	require.NoError(t, err)
	memory, err := Open(data, public)
	require.NoError(t, err)
	for _, a := range []*Archive{file, memory} {
		assert.Equal(t, []string{"a", "b", "c", "empty"}, a.Names())
		for name, want := range map[string]string{"a": "one", "b": "two", "c": "two", "empty": ""} {
			got, err := a.Read(name)
			require.NoError(t, err)
			assert.Equal(t, want, string(got))
			assert.EqualValues(t, len(want), a.Size(name))
			assert.True(t, a.Has(name))
		}
		_, err = a.Read("d")
		assert.ErrorIs(t, err, ErrMissing)
		assert.False(t, a.Has("d"))
	}
	require.NoError(t, file.Close())
	_, err = file.Read("a")
	assert.Error(t, err, "the file is closed")
}

func TestOutputIsDeterministicAndShared(t *testing.T) {
	shuffled := write(t, []Section{{"empty", []byte{}}, {"c", []byte("two")}, {"a", []byte("one")},
		{"b", []byte("two")}})
	assert.Equal(t, small(t), shuffled, "neither order nor time changes a byte")
	big := bytes.Repeat([]byte("x"), 100_000)
	assert.Less(t, len(write(t, []Section{{"a", big}, {"b", big}})), 110_000, "equal contents are stored once")
}

func TestEqualNamesAreRefused(t *testing.T) {
	err := Write(new(bytes.Buffer), []Section{{"a", nil}, {"a", nil}}, key(1))
	assert.ErrorContains(t, err, `two sections of a bundle are called "a"`)
}

func TestForeignKeysAreRefused(t *testing.T) {
	_, err := Open(small(t), sign.Public(key(2)))
	assert.ErrorIs(t, err, sign.ErrForeignKey)
	_, err = Open(small(t))
	assert.ErrorIs(t, err, sign.ErrForeignKey)
}

// TestMalformedKeysAreRefused opens archives whose seals name the malformed key itself:
// the only ones for which it would be used.
func TestMalformedKeysAreRefused(t *testing.T) {
	for _, length := range []int{0, 1, 31, 33, 64} {
		bad := make(ed25519.PublicKey, length)
		data := small(t)
		id := sign.ID(bad)
		copy(data[sealAt:], id[:])
		path := filepath.Join(t.TempDir(), "bundle")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		for _, keys := range [][]ed25519.PublicKey{{bad}, {public, bad}, {bad, public}, {nil, bad}} {
			_, err := Open(data, keys...)
			assert.ErrorIs(t, err, sign.ErrKeyLength)
			_, err = OpenFile(path, keys...)
			assert.ErrorIs(t, err, sign.ErrKeyLength)
			_, err = Open(small(t), keys...)
			assert.ErrorIs(t, err, sign.ErrKeyLength, "whoever signed")
		}
		assert.ErrorIs(t, Write(io.Discard, nil, make(ed25519.PrivateKey, length&^64)), sign.ErrKeyLength)
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	_, err := OpenFile(t.TempDir(), public)
	assert.ErrorContains(t, err, "folder")
	_, err = OpenFile("/dev/zero", public)
	assert.Error(t, err)
}

func TestForeignVersionsAreRefused(t *testing.T) {
	data := small(t)
	binary.LittleEndian.PutUint32(data[8:], formatVersion+1)
	_, err := Open(data, public)
	assert.ErrorIs(t, err, ErrVersion)
	_, err = Open([]byte("#!/bin/sh\nexit 0\n"), public)
	assert.ErrorIs(t, err, ErrFormat)
	_, err = OpenFile(filepath.Join(t.TempDir(), "none"), public)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// readAll opens and reads everything.
func readAll(data []byte) error {
	a, err := Open(data, public)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range a.Names() {
		_, err := a.Read(name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Every bit of the file counts, and so does its length.
func TestEveryBitFlipAndCutIsSeen(t *testing.T) {
	data := small(t)
	require.NoError(t, readAll(data))
	for at := range data {
		for bit := range 8 {
			bad := slices.Clone(data)
			bad[at] ^= 1 << bit
			require.Error(t, readAll(bad), "bit %d of byte %d", bit, at)
		}
		require.Error(t, readAll(data[:at]), "cut after %d bytes", at)
	}
	require.Error(t, readAll(append(slices.Clone(data), 0)), "a byte more")
}

// A key may sign an index that is nonsense: it is refused, with no panic.
func TestSignedNonsenseIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		good := small(t)
		length := int(binary.LittleEndian.Uint32(good[12:]))
		index := slices.Clone(good[preamble : preamble+length])
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			index[rapid.IntRange(0, len(index)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		bad := slices.Concat(good[:sealAt], sign.Seal(key(1), purpose, slices.Concat(good[:sealAt], index)), index,
			good[preamble+length:])
		_ = readAll(bad) // whatever it says, it says it
	})
}

// FuzzOpen: no file makes the reader panic or allocate out of proportion, as it is and
// with a signature that is right.
func FuzzOpen(f *testing.F) {
	f.Add(small(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, resigned(data)} {
			if n := fuzztest.Allocated(func() { _ = readAll(data) }); n > int64(64*len(data)+1<<20) {
				t.Fatalf("%d bytes were allocated for a bundle of %d", n, len(data))
			}
		}
	})
}

// resigned is data with the magic number, the version, the lengths and the signature that
// belong to what lies behind the preamble; its length of the index is kept where it fits.
func resigned(data []byte) []byte {
	if len(data) < preamble {
		return data
	}
	out := slices.Clone(data)
	copy(out, magic)
	binary.LittleEndian.PutUint32(out[8:], formatVersion)
	length := binary.LittleEndian.Uint32(out[12:]) % uint32(len(out)-preamble+1)
	binary.LittleEndian.PutUint32(out[12:], length)
	binary.LittleEndian.PutUint64(out[16:], uint64(len(out)))
	copy(out[sealAt:], sign.Seal(key(1), purpose, slices.Concat(out[:sealAt], out[preamble:preamble+int(length)])))
	return out
}
