package cloudstore

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/memblob"

	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/sign"
)

func buckets(t *testing.T) map[string]string {
	return map[string]string{"memory": "mem://",
		"folder": "file://" + filepath.ToSlash(t.TempDir()) + "?no_tmp_dir=true"}
}

func TestObjectsReadBack(t *testing.T) {
	for kind, url := range buckets(t) {
		t.Run(kind, func(t *testing.T) {
			s, err := Open(t.Context(), url)
			require.NoError(t, err)
			defer s.Close()
			name := strings.Repeat("0a", 32)
			_, err = s.Get(t.Context(), name)
			assert.ErrorIs(t, err, fs.ErrNotExist)
			for _, data := range [][]byte{[]byte("one"), {}, bytes.Repeat([]byte("long"), 100_000)} {
				require.NoError(t, s.Put(t.Context(), name, data))
				got, err := s.Get(t.Context(), name)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(data, got))
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			assert.Error(t, s.Put(ended, name, []byte("late")))
		})
	}
}

func TestUnknownSchemes(t *testing.T) {
	_, err := Open(t.Context(), "nosuch://bucket")
	assert.Error(t, err)
}

// Two machines with caches of their own meet in a bucket.
func TestCachesMeetInABucket(t *testing.T) {
	for kind, url := range buckets(t) {
		t.Run(kind, func(t *testing.T) {
			s, err := Open(t.Context(), url)
			require.NoError(t, err)
			defer s.Close()
			key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
			open := func() *cache.Cache {
				return cache.Open(cache.Options{Dir: t.TempDir(), OnWarning: func(err error) { t.Error(err) },
					Shared: &cache.Shared{Store: s, Key: key, Trusted: []ed25519.PublicKey{sign.Public(key)}}})
			}
			k := cache.NewKey(cache.Kernel).String("source", "k").Sum()
			want := cache.Entry{Sections: []cache.Section{{Name: cache.Cubin, Data: []byte("code")}}}
			first := open()
			require.True(t, first.Put(k, want))
			require.NoError(t, first.Flush(t.Context()))
			got, outcome := open().Get(k)
			assert.Equal(t, cache.SharedHit, outcome)
			assert.Equal(t, want.Sections, got.Sections)
		})
	}
}
