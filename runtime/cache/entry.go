package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The sections in use. The store gives names no meaning.
const (
	PTX    = "ptx"
	Cubin  = "cubin"
	Source = "source"
	Meta   = "meta"
)

// Section is one named part of an entry.
type Section struct {
	Name string
	Data []byte
}

// Entry is what a key stands for. Entries are shared between callers: do not write
// to their bytes.
type Entry struct {
	Sections []Section
	Created  time.Time // set when it is stored
}

// Section returns the bytes of the named section; nil where there is none.
func (e Entry) Section(name string) []byte {
	for _, s := range e.Sections {
		if s.Name == name {
			return s.Data
		}
	}
	return nil
}

// A file is a preamble, a header and the payload, little-endian:
//
//	 0  magic, 8 bytes
//	 8  format version, 4 bytes
//	12  length of the header, 4 bytes
//	16  length of the payload, 8 bytes
//	24  SHA-256 of all other bytes of the file
//	56  header: kind, sum, creation time in ns, fields (name, hash), sections (name, length)
//	    payload: the sections one after the other
//
// Texts have a 2-byte length, lists a 2-byte count.
const (
	magic         = "fusec\x00\xca\xfe"
	formatVersion = 2
	sumAt         = 24
	preamble      = sumAt + sha256.Size
	// maxEntry bounds what reading one entry allocates.
	maxEntry = 1 << 30
	// headBytes is enough for the header of any entry that fusec writes.
	headBytes = 1 << 16
)

// What can be wrong with the bytes of an entry.
var (
	errTruncated = errors.New("entry is truncated")
	errVersion   = errors.New("entry has another format version")
	errDamaged   = errors.New("entry is damaged")
	errWrongKey  = errors.New("entry has another key")
)

// encodeEntry returns the file of an entry.
func encodeEntry(k Key, e Entry) ([]byte, error) {
	head, payload, err := encodeHeader(k, e)
	if err != nil {
		return nil, err
	}
	size := preamble + len(head) + payload
	if size > maxEntry {
		return nil, fmt.Errorf("entry %v has %d bytes, more than the %d allowed", k, size, maxEntry)
	}
	b := make([]byte, preamble, size)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(head)))
	binary.LittleEndian.PutUint64(b[16:], uint64(payload))
	b = append(b, head...)
	for _, s := range e.Sections {
		b = append(b, s.Data...)
	}
	sum := checksum(b)
	copy(b[sumAt:], sum[:])
	return b, nil
}

func encodeHeader(k Key, e Entry) (head []byte, payload int, err error) {
	if max(len(k.Fields), len(e.Sections)) > math.MaxUint16 {
		return nil, 0, fmt.Errorf("entry %v has %d key fields and %d sections, more than %d",
			k, len(k.Fields), len(e.Sections), math.MaxUint16)
	}
	text := func(s string) {
		if len(s) > math.MaxUint16 {
			err = fmt.Errorf("entry %v has a name of %d bytes, more than %d", k, len(s), math.MaxUint16)
		}
		head = binary.LittleEndian.AppendUint16(head, uint16(len(s)))
		head = append(head, s...)
	}
	text(string(k.Kind))
	head = append(head, k.Sum[:]...)
	head = binary.LittleEndian.AppendUint64(head, uint64(e.Created.UnixNano()))
	head = binary.LittleEndian.AppendUint16(head, uint16(len(k.Fields)))
	for _, f := range k.Fields {
		text(f.Name)
		head = append(head, f.Hash[:]...)
	}
	head = binary.LittleEndian.AppendUint16(head, uint16(len(e.Sections)))
	for _, s := range e.Sections {
		text(s.Name)
		head = binary.LittleEndian.AppendUint64(head, uint64(len(s.Data)))
		payload += len(s.Data)
	}
	return head, payload, err
}

// checksum hashes a file without the checksum in it.
func checksum(b []byte) Hash {
	h := sha256.New()
	h.Write(b[:sumAt])
	h.Write(b[preamble:])
	return Hash(h.Sum(nil))
}

// decodeEntry reads the file of an entry. The entry shares memory with b. It accepts
// exactly what encodeEntry writes, and allocates no more than b's length allows.
func decodeEntry(b []byte) (Key, Entry, error) {
	h, err := decodeHeader(b, int64(len(b)))
	if err != nil {
		return Key{}, Entry{}, err
	}
	if checksum(b) != Hash(b[sumAt:preamble]) {
		return Key{}, Entry{}, fmt.Errorf("%w: the checksum does not match", errDamaged)
	}
	e := Entry{Created: h.created, Sections: make([]Section, len(h.sections))}
	rest := b[h.payloadAt:]
	for i, s := range h.sections {
		e.Sections[i] = Section{Name: s.Name, Data: slices.Clip(rest[:s.Size])}
		rest = rest[s.Size:]
	}
	return h.key, e, nil
}

// header is the part before the payload.
type header struct {
	key       Key
	created   time.Time
	sections  []SectionInfo
	payloadAt int
}

// decodeHeader reads the start b of a file of the given size. It does not see the
// payload, so it cannot test the checksum.
func decodeHeader(b []byte, size int64) (header, error) {
	r := &reader{rest: b}
	if string(r.take(len(magic))) != magic {
		return header{}, fmt.Errorf("%w: it does not start with the magic number", errDamaged)
	}
	version, headLen, payload := r.u32(), r.u32(), r.u64()
	r.take(sha256.Size)
	if r.short {
		return header{}, errTruncated
	}
	if version != formatVersion {
		return header{}, fmt.Errorf("%w: expected %d, found %d: another version of fusec wrote it", errVersion,
			formatVersion, version)
	}
	at := int64(preamble) + int64(headLen)
	if payload > maxEntry || at+int64(payload) != size {
		return header{}, fmt.Errorf("%w: expected %d + %d bytes, found %d", errTruncated, at, payload, size)
	}
	r.rest = r.take(int(headLen))
	h := r.header()
	switch {
	case r.short || len(r.rest) > 0:
		return header{}, fmt.Errorf("%w: the header does not fill its length", errDamaged)
	case !slices.Contains(Kinds(), h.key.Kind) || h.key.Sum != sumOf(formatVersion, h.key.Kind, h.key.Fields):
		return header{}, fmt.Errorf("%w: the key does not match its fields", errDamaged)
	}
	h.payloadAt = int(at)
	return h, checkSections(h.sections, payload)
}

func checkSections(sections []SectionInfo, payload uint64) error {
	for _, s := range sections {
		if s.Size < 0 || uint64(s.Size) > payload {
			return fmt.Errorf("%w: section %.20q does not fit", errDamaged, s.Name)
		}
		payload -= uint64(s.Size)
	}
	if payload != 0 {
		return fmt.Errorf("%w: %d bytes belong to no section", errDamaged, payload)
	}
	return nil
}

// reader takes values off the front of rest. If there is too little left, it sets short and
// takes nothing more.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short || n < 0 || n > len(r.rest) {
		r.short = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u16() int {
	if b := r.take(2); b != nil {
		return int(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) text() string { return string(r.take(r.u16())) }

func (r *reader) hash() (h Hash) {
	copy(h[:], r.take(len(h)))
	return h
}

func (r *reader) header() (h header) {
	h.key.Kind = Kind(r.text())
	h.key.Sum = r.hash()
	h.created = time.Unix(0, int64(r.u64()))
	for range r.u16() {
		if r.short {
			break
		}
		h.key.Fields = append(h.key.Fields, Field{Name: r.text(), Hash: r.hash()})
	}
	for range r.u16() {
		if r.short {
			break
		}
		h.sections = append(h.sections, SectionInfo{Name: r.text(), Size: int64(r.u64())})
	}
	return h
}
