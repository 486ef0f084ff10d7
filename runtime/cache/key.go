package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"reflect"
	"slices"
)

// Kind says what an entry holds. It is part of the key.
type Kind string

// The kinds of entry.
const (
	Plan     Kind = "plan"     // the plan and launches of one request
	Kernel   Kind = "kernel"   // the code of one kernel
	Compiler Kind = "compiler" // which compiler made the kernels
	Choice   Kind = "choice"   // what measurements on a device decided
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Plan, Kernel, Compiler, Choice} }

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Field is one ingredient of a key: its name, and the hash of type and value.
type Field struct {
	Name string
	Hash Hash
}

// Key names an entry: equal keys mean equal contents. Sum is the hash of everything else. The
// fields are kept too, so that differences between two keys can be named.
type Key struct {
	Kind   Kind
	Sum    Hash
	Fields []Field
}

// String returns kind and sum, as kernel/0123...
func (k Key) String() string { return string(k.Kind) + "/" + k.Sum.String() }

// Differ returns the names of the fields that k and other do not share, in the
// order of k's fields; those only other has come last.
func (k Key) Differ(other Key) []string {
	var names []string
	for _, f := range k.Fields {
		if !slices.Contains(other.Fields, f) {
			names = append(names, f.Name)
		}
	}
	for _, f := range other.Fields {
		if !slices.ContainsFunc(k.Fields, func(g Field) bool { return g.Name == f.Name }) {
			names = append(names, f.Name)
		}
	}
	return names
}

// KeyBuilder collects the fields of a key. Names should be distinct; order counts.
// It is not safe for concurrent use.
type KeyBuilder struct {
	kind   Kind
	fields []Field
}

// NewKey starts a key: NewKey(Kernel).String("source", s).Int("arch", 90).Sum().
func NewKey(kind Kind) *KeyBuilder {
	if !slices.Contains(Kinds(), kind) {
		panic(fmt.Sprintf("BUG: cache: no kind of entry is called %q", kind))
	}
	return &KeyBuilder{kind: kind}
}

// The types of field, hashed with each value: "1", 1 and true are three values.
const (
	tagString = 's'
	tagBytes  = 'b'
	tagInt    = 'i'
	tagUint   = 'u'
	tagFloat  = 'f'
	tagBool   = 't'
)

// String adds a text.
func (b *KeyBuilder) String(name, v string) *KeyBuilder { return b.add(name, tagString, []byte(v)) }

// Bytes adds bytes.
func (b *KeyBuilder) Bytes(name string, v []byte) *KeyBuilder { return b.add(name, tagBytes, v) }

// Int adds a number.
func (b *KeyBuilder) Int(name string, v int64) *KeyBuilder { return b.number(name, tagInt, uint64(v)) }

// Bool adds a truth value.
func (b *KeyBuilder) Bool(name string, v bool) *KeyBuilder {
	if v {
		return b.number(name, tagBool, 1)
	}
	return b.number(name, tagBool, 0)
}

// Struct adds every field of a struct of options under name.Field, exported or
// not, so that an option added later cannot be forgotten here. Fields may be
// booleans, numbers, strings, and structs, arrays and slices of those; anything
// else has no fixed value to hash and panics.
func (b *KeyBuilder) Struct(name string, v any) *KeyBuilder {
	b.value(name, reflect.ValueOf(v))
	return b
}

func (b *KeyBuilder) value(name string, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			b.value(name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		b.Int(name+".len", int64(v.Len()))
		for i := range v.Len() {
			b.value(fmt.Sprintf("%s[%d]", name, i), v.Index(i))
		}
	case v.Kind() == reflect.String:
		b.String(name, v.String())
	case v.Kind() == reflect.Bool:
		b.Bool(name, v.Bool())
	case v.CanInt():
		b.Int(name, v.Int())
	case v.CanUint():
		b.number(name, tagUint, v.Uint())
	case v.CanFloat():
		b.number(name, tagFloat, math.Float64bits(v.Float()))
	default:
		panic(fmt.Sprintf("BUG: cache: key field %s has type %v, which cannot be hashed", name, v.Kind()))
	}
}

// Sum returns the key.
func (b *KeyBuilder) Sum() Key {
	fields := slices.Clone(b.fields)
	return Key{Kind: b.kind, Sum: sumOf(formatVersion, b.kind, fields), Fields: fields}
}

func (b *KeyBuilder) number(name string, tag byte, v uint64) *KeyBuilder {
	return b.add(name, tag, binary.LittleEndian.AppendUint64(nil, v))
}

func (b *KeyBuilder) add(name string, tag byte, v []byte) *KeyBuilder {
	h := sha256.New()
	h.Write([]byte{tag})
	writeSized(h, v)
	b.fields = append(b.fields, Field{Name: name, Hash: Hash(h.Sum(nil))})
	return b
}

// sumOf hashes names and field hashes, all with their lengths, so that no two lists of fields
// give the same bytes. The version of the format is part of it, so that versions of fusec that
// share a folder do not read each other's files.
func sumOf(version uint32, kind Kind, fields []Field) Hash {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, version) // writing to a hash never fails
	writeSized(h, []byte(kind))
	for _, f := range fields {
		writeSized(h, []byte(f.Name))
		h.Write(f.Hash[:])
	}
	return Hash(h.Sum(nil))
}

func writeSized(h hash.Hash, b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}
