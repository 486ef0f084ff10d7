// Package bundle reads and writes signed archives: named byte sections in one file,
// which is how compiled kernels travel with an application. It must not know what
// the sections hold.
//
// The signature covers the index, and the index holds the hash of every section. Opening an
// archive reads and checks only the index; a section is read and checked when it is first used.
// The same sections and key give the same bytes.
package bundle

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/runtime/sign"
)

// A file is a preamble, the index and the blobs, little-endian:
//
//	 0  magic, 8 bytes
//	 8  format version, 4 bytes
//	12  length of the index, 4 bytes
//	16  length of the file, 8 bytes
//	24  seal of bytes 0 to 23 and the index
//	96  index: blobs (length, SHA-256), sections by name (name, blob)
//	    the blobs, one after the other
//
// Lists have a 4-byte count, names a 2-byte length. Sections of equal contents share
// a blob.
const (
	magic         = "fusec\x00\xb0\x0d"
	formatVersion = 1
	sealAt        = 24
	preamble      = sealAt + sign.SealSize
	purpose       = "fusec bundle"
	// maxIndex bounds what opening a file allocates.
	maxIndex = 64 << 20
)

// What can be wrong with an archive, beside its signature (sign.ErrSignature,
// sign.ErrForeignKey) and the names of sections.
var (
	ErrFormat  = errors.New("it is no bundle")
	ErrVersion = errors.New("the bundle has another format version")
	ErrDamaged = errors.New("the bundle is damaged")
	ErrMissing = errors.New("the bundle has no such section")
)

// A Section is one named part.
type Section struct {
	Name string // at most 65535 bytes
	Data []byte
}

type blob struct {
	at, size int64
	sum      [sha256.Size]byte
}

// Write writes an archive of sections, in any order, and signs it. Two sections of
// one name are an error.
func Write(w io.Writer, sections []Section, key ed25519.PrivateKey) error {
	if err := sign.CheckSecret(key); err != nil {
		return err
	}
	sections = slices.Clone(sections)
	slices.SortFunc(sections, func(a, b Section) int { return cmp.Compare(a.Name, b.Name) })
	index, blobs, err := indexOf(sections)
	if err != nil {
		return err
	}
	size := int64(preamble + len(index))
	for _, b := range blobs {
		size += int64(len(b))
	}
	head := make([]byte, 0, sealAt)
	head = append(head, magic...)
	head = binary.LittleEndian.AppendUint32(head, formatVersion)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(index)))
	head = binary.LittleEndian.AppendUint64(head, uint64(size))
	seal := sign.Seal(key, purpose, slices.Concat(head, index))
	for _, part := range append([][]byte{head, seal, index}, blobs...) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// indexOf lists sorted sections and their distinct contents.
func indexOf(sections []Section) (index []byte, blobs [][]byte, err error) {
	number := map[[sha256.Size]byte]uint32{}
	var names, sums []byte
	for i, s := range sections {
		if i > 0 && sections[i-1].Name == s.Name {
			return nil, nil, fmt.Errorf("two sections of a bundle are called %q", s.Name)
		}
		if len(s.Name) > math.MaxUint16 {
			return nil, nil, fmt.Errorf("the name of a section has %d bytes, more than %d", len(s.Name), math.MaxUint16)
		}
		sum := sha256.Sum256(s.Data)
		n, known := number[sum]
		if !known {
			n = uint32(len(blobs))
			number[sum] = n
			blobs = append(blobs, s.Data)
			sums = append(binary.LittleEndian.AppendUint64(sums, uint64(len(s.Data))), sum[:]...)
		}
		names = binary.LittleEndian.AppendUint16(names, uint16(len(s.Name)))
		names = binary.LittleEndian.AppendUint32(append(names, s.Name...), n)
	}
	index = binary.LittleEndian.AppendUint32(nil, uint32(len(blobs)))
	index = append(index, sums...)
	index = binary.LittleEndian.AppendUint32(index, uint32(len(sections)))
	index = append(index, names...)
	if len(index) > maxIndex {
		return nil, nil, fmt.Errorf("the index of the bundle has %d bytes, more than %d", len(index), maxIndex)
	}
	return index, blobs, nil
}

// An Archive is an open bundle. It is safe for concurrent use.
type Archive struct {
	from  io.ReaderAt
	close func() error
	names []string
	blobs map[string]blob
}

// OpenFile opens a regular file. Close it.
func OpenFile(path string, keys ...ed25519.PublicKey) (*Archive, error) {
	f, info, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	a, err := open(f, info.Size(), keys)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	a.close = f.Close
	return a, nil
}

// Open opens an archive in memory, signed with one of the keys. It keeps data, which
// must not change.
func Open(data []byte, keys ...ed25519.PublicKey) (*Archive, error) {
	a, err := open(bytes.NewReader(data), int64(len(data)), keys)
	if err != nil {
		return nil, err
	}
	a.close = func() error { return nil }
	return a, nil
}

// HeadSize is how many bytes of a file HasMagic looks at.
const HeadSize = len(magic)

// HasMagic reports whether the beginning of a file is a bundle's.
func HasMagic(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }

func open(from io.ReaderAt, size int64, keys []ed25519.PublicKey) (*Archive, error) {
	head := make([]byte, min(size, preamble))
	if err := readAt(from, head, 0); err != nil {
		return nil, err
	}
	if !HasMagic(head) {
		return nil, fmt.Errorf("%w: it does not start with the magic number", ErrFormat)
	}
	if len(head) < preamble {
		return nil, fmt.Errorf("%w: it is cut short after %d bytes", ErrDamaged, size)
	}
	if v := binary.LittleEndian.Uint32(head[8:]); v != formatVersion {
		return nil, fmt.Errorf("%w: expected %d, found %d: make it again with this version of fusec",
			ErrVersion, formatVersion, v)
	}
	if want := binary.LittleEndian.Uint64(head[16:]); want != uint64(size) {
		return nil, fmt.Errorf("%w: it has %d bytes, expected %d", ErrDamaged, size, want)
	}
	length := int64(binary.LittleEndian.Uint32(head[12:]))
	if length > min(maxIndex, size-preamble) {
		return nil, fmt.Errorf("%w: an index of %d bytes does not fit", ErrDamaged, length)
	}
	index := make([]byte, length)
	if err := readAt(from, index, preamble); err != nil {
		return nil, err
	}
	if err := sign.Check(keys, purpose, slices.Concat(head[:sealAt], index), head[sealAt:]); err != nil {
		return nil, err
	}
	a := &Archive{from: from, blobs: map[string]blob{}}
	return a, a.read(index, preamble+length, size)
}

func readAt(from io.ReaderAt, b []byte, at int64) error {
	if n, err := from.ReadAt(b, at); n < len(b) {
		return fmt.Errorf("%w: cannot read %d bytes at %d: %w", ErrDamaged, len(b), at, err)
	}
	return nil
}

// read reads an index whose signature is right. The contents are checked nevertheless, because
// anything can be signed.
func (a *Archive) read(index []byte, at, size int64) error {
	r := &reader{rest: index}
	blobs := make([]blob, 0, r.count(8+sha256.Size))
	for range cap(blobs) {
		b := blob{at: at, size: int64(r.u64()), sum: [sha256.Size]byte(r.take(sha256.Size))}
		if b.size < 0 || b.size > size-at {
			return fmt.Errorf("%w: section contents do not fit", ErrDamaged)
		}
		blobs, at = append(blobs, b), at+b.size
	}
	for range r.count(6) {
		name := string(r.take(r.u16()))
		n := r.u32()
		if r.short || n >= uint32(len(blobs)) {
			break
		}
		a.names, a.blobs[name] = append(a.names, name), blobs[n]
	}
	if r.short || len(r.rest) > 0 || at != size || len(a.names) != len(a.blobs) {
		return fmt.Errorf("%w: the index does not fit the file", ErrDamaged)
	}
	return nil
}

// Names lists the sections, sorted. The caller must not change the list.
func (a *Archive) Names() []string { return a.names }

// Has reports whether there is a section of that name.
func (a *Archive) Has(name string) bool {
	_, ok := a.blobs[name]
	return ok
}

// Size is the length of a section in bytes; 0 for none.
func (a *Archive) Size(name string) int64 { return a.blobs[name].size }

// Read returns a section, after checking that its contents are those that were signed.
func (a *Archive) Read(name string) ([]byte, error) {
	b, ok := a.blobs[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrMissing, name)
	}
	data := make([]byte, b.size)
	if err := readAt(a.from, data, b.at); err != nil {
		return nil, err
	}
	if sha256.Sum256(data) != b.sum {
		return nil, fmt.Errorf("%w: section %s was changed after it was signed", ErrDamaged, name)
	}
	return data, nil
}

// Close closes the file. Sections that were read stay.
func (a *Archive) Close() error { return a.close() }

// reader takes values off the front of rest. If there is too little left, it sets short and
// returns zeros.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.rest, r.short = nil, true
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u16() int    { return int(binary.LittleEndian.Uint16(r.take(2))) }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// count reads how many elements of at least the given size follow: no more than fit.
func (r *reader) count(each int) int {
	n := int(r.u32())
	if n > len(r.rest)/each {
		r.rest, r.short = nil, true
		return 0
	}
	return n
}
