package httpstore

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/webdav"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/sign"
)

// bazelServer is what bazel-remote does with /ac/: names are hashes, messages are
// checked, and each gets the address of who sent it (execution_metadata.worker).
type bazelServer struct {
	mu   sync.Mutex
	data map[string][]byte
}

var bazelPath = regexp.MustCompile(`^/(?:.*/)?ac/([a-f0-9]{64})$`)

// FuzzUnwrap: no answer of a server makes the reader panic; data survives the way there
// and back, whatever fields a server adds behind it.
func FuzzUnwrap(f *testing.F) {
	f.Add(wrap([]byte("data")), []byte("data"))
	f.Add([]byte{8, 1, 0x2a, 0}, []byte{})
	f.Fuzz(func(t *testing.T, message, data []byte) {
		found, err := unwrap(message)
		if err == nil && len(found) > len(message) {
			t.Fatalf("%d bytes were found in %d", len(found), len(message))
		}
		if _, other := unwrap(append(wrap(data), message...)); (err == nil) != (other == nil) {
			t.Fatalf("behind data: %v, alone: %v", other, err)
		}
		if found, err = unwrap(wrap(data)); err != nil || !bytes.Equal(found, data) {
			t.Fatalf("found %q of %q: %v", found, data, err)
		}
	})
}

func (s *bazelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := bazelPath.FindStringSubmatch(r.URL.Path)
	if m == nil {
		http.Error(w, "resource name must be a SHA256 hash in hex", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		b, ok := s.data[m[1]]
		if !ok {
			http.Error(w, "Not found", http.StatusNotFound)
			return
		}
		w.Write(b)
	case http.MethodPut:
		b, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(b)) {
			http.Error(w, "sizes don't match", http.StatusBadRequest)
			return
		}
		if _, err := unwrap(b); err != nil {
			http.Error(w, "Failed to marshal ActionResult", http.StatusBadRequest)
			return
		}
		b = bytes.TrimPrefix(b, []byte{dataField<<3 | wireBytes, 0}) // an empty field is none
		worker := append(binary.AppendUvarint([]byte{1<<3 | wireBytes}, uint64(len(r.RemoteAddr))), r.RemoteAddr...)
		b = append(binary.AppendUvarint(append(b, 9<<3|wireBytes), uint64(len(worker))), worker...)
		s.data[m[1]] = b
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// servers are the kinds of server there are, by name.
func servers(t *testing.T) map[string]string {
	dav := &webdav.Handler{FileSystem: webdav.Dir(t.TempDir()), LockSystem: webdav.NewMemLS()}
	prefixed := &webdav.Handler{Prefix: "/dav", FileSystem: webdav.NewMemFS(), LockSystem: webdav.NewMemLS()}
	list := map[string]string{
		"bazel":           serve(t, &bazelServer{data: map[string][]byte{}}),
		"bazel in a path": serve(t, &bazelServer{data: map[string][]byte{}}) + "/team/one",
		"webdav":          serve(t, dav),
		"webdav memory":   serve(t, prefixed) + "/dav/",
	}
	if address := os.Getenv("FUSEC_TEST_STORE"); address != "" { // a server that is there, as bazel-remote
		list["given"] = address
	}
	return list
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func name(s string) string { return strings.Repeat(s, 64/len(s)) }

func TestServers(t *testing.T) {
	for kind, address := range servers(t) {
		t.Run(kind, func(t *testing.T) {
			s, err := Open(address, nil)
			require.NoError(t, err)
			_, err = s.Get(t.Context(), name("00"))
			assert.ErrorIs(t, err, fs.ErrNotExist)
			for _, data := range [][]byte{[]byte("one"), {}, bytes.Repeat([]byte("long"), 100_000), []byte("over it")} {
				require.NoError(t, s.Put(t.Context(), name("0a"), data))
				got, err := s.Get(t.Context(), name("0a"))
				require.NoError(t, err)
				assert.True(t, bytes.Equal(data, got))
			}
		})
	}
}

// A fleet: what one machine compiles, the others find, over a real server.
func TestCachesMeetOnAServer(t *testing.T) {
	for kind, address := range servers(t) {
		t.Run(kind, func(t *testing.T) {
			key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
			open := func() *cache.Cache {
				s, err := Open(address, nil)
				require.NoError(t, err)
				return cache.Open(cache.Options{Dir: t.TempDir(), OnWarning: func(err error) { t.Error(err) },
					Shared: &cache.Shared{Store: s, Key: key, Trusted: []ed25519.PublicKey{sign.Public(key)}}})
			}
			k := cache.NewKey(cache.Kernel).String("source", kind+t.TempDir()).Sum()
			entry := cache.Entry{Sections: []cache.Section{{Name: cache.Cubin, Data: []byte("code")}}}
			first := open()
			_, o, err := first.GetOrCreate(t.Context(), k, func(context.Context) (cache.Entry, error) {
				return entry, nil
			})
			require.NoError(t, err)
			assert.Equal(t, cache.Created, o)
			require.NoError(t, first.Flush(t.Context()))
			e, o, err := open().GetOrCreate(t.Context(), k, func(context.Context) (cache.Entry, error) {
				return entry, errors.New("compiled twice")
			})
			require.NoError(t, err)
			assert.Equal(t, cache.SharedHit, o)
			assert.Equal(t, entry.Sections, e.Sections)
		})
	}
}

func TestRefusals(t *testing.T) {
	answers := func(status int, body string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, body, status) }))
	}
	for _, row := range []struct {
		address, get, put string
	}{
		{answers(http.StatusUnauthorized, "who are you?\nsecond line"), `GET 401 Unauthorized: "who are you?"`,
			`PUT 401 Unauthorized: "who are you?"`},
		{answers(http.StatusInsufficientStorage, ""), "507", "507"},
		{answers(http.StatusConflict, "no"), "409", "MKCOL 409"},
	} {
		s, err := Open(row.address, nil)
		require.NoError(t, err)
		_, err = s.Get(t.Context(), name("00"))
		assert.ErrorContains(t, err, row.get)
		assert.NotErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorContains(t, s.Put(t.Context(), name("00"), []byte("x")), row.put)
	}
	s, err := Open(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("<html>a portal that wants a login</html>"))
	})), nil)
	require.NoError(t, err)
	_, err = s.Get(t.Context(), name("00"))
	assert.ErrorContains(t, err, "is this the right address?")
}

func TestPasswordsAreSentAndNotShown(t *testing.T) {
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		assert.Equal(t, "fleet", user)
		assert.Equal(t, "secret", password)
		http.Error(w, "no", http.StatusForbidden)
	}))
	s, err := Open(strings.Replace(address, "://", "://fleet:secret@", 1), nil)
	require.NoError(t, err)
	_, err = s.Get(t.Context(), name("00"))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secret")
	for _, address := range []string{"fleet:secret@host", "ftp://fleet:secret@host/", "http://fleet:secret@",
		"http://a:secret@%zz"} {
		_, err := Open(address, nil)
		require.Error(t, err, address)
		assert.NotContains(t, err.Error(), "secret")
	}
	gone, err := Open("http://fleet:secret@127.0.0.1:1", nil)
	require.NoError(t, err)
	_, err = gone.Get(t.Context(), name("00"))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secret")
}

func TestHangingServerEndsWithTheContext(t *testing.T) {
	hang := make(chan struct{})
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-hang }))
	t.Cleanup(func() { close(hang) })
	s, err := Open(address, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Get(ctx, name("00"))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		got, err := unwrap(wrap(data))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data, got))
		unwrap(data) // whatever it is: no panic
	})
	around := append([]byte{0x20, 0x07, 0x4d, 1, 2, 3, 4, 0x51, 1, 2, 3, 4, 5, 6, 7, 8}, wrap([]byte("x"))...)
	got, err := unwrap(append(around, 0x4a, 0x02, 9, 9))
	require.NoError(t, err)
	assert.Equal(t, "x", string(got), "other fields, of all types, are passed over")
	for _, bad := range [][]byte{{0x2a, 5, 1}, {0x2a}, {0x80}, {0x0b}, {0x20, 0x80}, {0x4d, 1}} {
		_, err := unwrap(bad)
		assert.Error(t, err, "%v", bad)
	}
}
