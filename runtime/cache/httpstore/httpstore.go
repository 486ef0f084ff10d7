// Package httpstore is a cache.Store on a server that speaks plain HTTP GET and PUT:
// bazel-remote and other servers of Bazel's HTTP cache protocol, and WebDAV servers
// (Apache's mod_dav, nginx, rclone). It must not know what is stored.
//
// A name is the resource URL/ac/NAME. Its contents are an ActionResult of Bazel's remote
// execution API whose only field is the data. Servers that check what is put under ac, as
// bazel-remote does, accept it and may add fields; other servers ignore the format.
package httpstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
)

// maxBytes bounds what is read of an answer.
const maxBytes = 256 << 20

// A Store is a server, or a folder of one. It is safe for concurrent use.
type Store struct {
	base   *url.URL
	client *http.Client
}

// Open returns the store at a URL, as http://user:password@cache.example:8080/fusec.
// Nothing is sent until it is used. client is http.DefaultClient where it is nil;
// limits of time are the callers', by their contexts.
func Open(address string, client *http.Client) (*Store, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		// The message does not show the address, which may hold a password.
		return nil, errors.New("malformed address: expected one like http://cache.example:8080/fusec")
	}
	if client == nil {
		client = http.DefaultClient
	}
	return &Store{base, client}, nil
}

const folder = "ac"

// Get implements cache.Store.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	r, body, err := s.do(ctx, http.MethodGet, s.base.JoinPath(folder, name), nil)
	if err != nil {
		return nil, err
	}
	switch r.StatusCode {
	case http.StatusOK:
		return unwrap(body)
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return nil, s.refused(r, body)
}

// Put implements cache.Store. On WebDAV servers it makes the folder where that is
// missing.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	at, message := s.base.JoinPath(folder, name), wrap(data)
	r, body, err := s.do(ctx, http.MethodPut, at, message)
	if err == nil && (r.StatusCode == http.StatusConflict || r.StatusCode == http.StatusNotFound) {
		if r, body, err = s.do(ctx, "MKCOL", s.base.JoinPath(folder), nil); err == nil && made(r.StatusCode) {
			r, body, err = s.do(ctx, http.MethodPut, at, message)
		}
	}
	if err != nil {
		return err
	}
	if r.StatusCode/100 != 2 {
		return s.refused(r, body)
	}
	return nil
}

// made reports whether a folder exists after MKCOL, made now or before.
func made(status int) bool { return status/100 == 2 || status == http.StatusMethodNotAllowed }

// do sends a request and reads the answer whole, so that the connection serves the
// next one.
func (s *Store) do(ctx context.Context, method string, at *url.URL, body []byte) (*http.Response, []byte, error) {
	q, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/octet-stream")
	}
	r, err := s.client.Do(q)
	if err != nil {
		return nil, nil, err // a *url.Error, which hides passwords
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(r.Body, maxBytes+1))
	if err == nil && len(answer) > maxBytes {
		err = fmt.Errorf("%s: the answer is longer than %d bytes", s.base.Redacted(), maxBytes)
	}
	return r, answer, err
}

func (s *Store) refused(r *http.Response, body []byte) error {
	const most = 200 // most bytes of a server's message
	said, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(most, len(body))])), "\n")
	return fmt.Errorf("%s answers %s %s: %q", r.Request.URL.Redacted(), r.Request.Method, r.Status, said)
}

// The data is field 5 of ActionResult, stdout_raw: bytes, as protocol buffers encode
// them: a key of number and type, the length, the bytes.
const (
	dataField = 5
	wireBytes = 2
)

func wrap(data []byte) []byte {
	out := binary.AppendUvarint(nil, dataField<<3|wireBytes)
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

var errNoMessage = errors.New("the answer is no ActionResult: is this the right address?")

// unwrap takes the data out of a message, and skips fields that a server has added. If the
// field is missing, the data is empty: a server that rewrites messages omits empty fields.
func unwrap(message []byte) ([]byte, error) {
	var data []byte
	for rest := message; len(rest) > 0; {
		key, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errNoMessage
		}
		value, size := field(rest[n:], key&7)
		if size < 0 {
			return nil, errNoMessage
		}
		if key == dataField<<3|wireBytes {
			data = value
		}
		rest = rest[n+size:]
	}
	return data, nil
}

// field reads the value of a field: its bytes, where that is its type, and how much
// it takes up; -1 where it does not fit.
func field(rest []byte, wire uint64) (value []byte, size int) {
	switch wire {
	case 0: // a number
		if _, n := binary.Uvarint(rest); n > 0 {
			return nil, n
		}
	case 1, 5: // eight bytes, four bytes
		if size = map[uint64]int{1: 8, 5: 4}[wire]; size <= len(rest) {
			return nil, size
		}
	case wireBytes:
		if length, n := binary.Uvarint(rest); n > 0 && length <= uint64(len(rest)-n) {
			return rest[n:][:length:length], n + int(length)
		}
	}
	return nil, -1
}
