// Package cloudstore is a cache.Store in an object store: S3, Google Cloud Storage,
// Azure, a folder or memory, through gocloud.dev/blob. It is a module of its own, so
// that programs which do not use it do not depend on the clients of those services.
// It must not know what is stored.
//
//	import _ "gocloud.dev/blob/s3blob"
//
//	store, err := cloudstore.Open(ctx, "s3://kernels?region=eu-central-1")
//	c := cache.Open(cache.Options{Shared: &cache.Shared{Store: store, Trusted: keys}})
package cloudstore

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// maxBytes bounds what is read of an object.
const maxBytes = 256 << 20

// A Store keeps entries as objects ac/NAME of a bucket. It is safe for concurrent use.
type Store struct{ bucket *blob.Bucket }

// Open opens a bucket by its URL; the program must import the driver for its scheme.
// Close it.
func Open(ctx context.Context, url string) (*Store, error) {
	bucket, err := blob.OpenBucket(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Store{bucket}, nil
}

// New returns the store in an open bucket, which Close closes.
func New(bucket *blob.Bucket) *Store { return &Store{bucket} }

func object(name string) string { return "ac/" + name }

// Get implements cache.Store.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	r, err := s.bucket.NewReader(ctx, object(name), nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size() > maxBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d of any entry", name, r.Size(), maxBytes)
	}
	return io.ReadAll(io.LimitReader(r, maxBytes))
}

// Put implements cache.Store. The object appears whole or not at all.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	return s.bucket.WriteAll(ctx, object(name), data, &blob.WriterOptions{ContentType: "application/octet-stream"})
}

// Close closes the bucket.
func (s *Store) Close() error { return s.bucket.Close() }
