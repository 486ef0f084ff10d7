package cache

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/internal/fuzztest"
)

func testKey(n int64) Key {
	return NewKey(Kernel).String("source", "__global__ void k() {}").Int("n", n).Bool("fast", true).Sum()
}

func testEntry(n int64) Entry {
	return Entry{Sections: []Section{
		{PTX, []byte("ptx text")}, {Cubin, binary.LittleEndian.AppendUint64(nil, uint64(n))}, {Meta, []byte{}},
	}}
}

func encoded(t testing.TB, k Key, e Entry) []byte {
	b, err := encodeEntry(k, e)
	require.NoError(t, err)
	return b
}

func TestEntryRoundTrip(t *testing.T) {
	e := testEntry(7)
	e.Created = time.Unix(0, 1234567890123456789)
	k, got, err := decodeEntry(encoded(t, testKey(7), e))
	require.NoError(t, err)
	assert.Equal(t, testKey(7), k)
	assert.Equal(t, e, got)
	assert.Equal(t, "ptx text", string(got.Section(PTX)))
	assert.Nil(t, got.Section("none"))

	k, got, err = decodeEntry(encoded(t, NewKey(Plan).Sum(), Entry{Created: e.Created}))
	require.NoError(t, err)
	assert.Equal(t, Plan, k.Kind)
	assert.Empty(t, got.Sections)
}

func TestEveryDamagedByteIsFound(t *testing.T) {
	good := encoded(t, testKey(1), testEntry(1))
	for at := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[at] ^= 1 << bit
			_, _, err := decodeEntry(b)
			require.Error(t, err, "byte %d bit %d", at, bit)
		}
		_, _, err := decodeEntry(good[:at])
		require.Error(t, err, "%d bytes", at)
		zeroed := append(bytes.Clone(good[:at]), make([]byte, len(good)-at)...)
		if !bytes.Equal(zeroed, good) {
			_, _, err = decodeEntry(zeroed)
			require.Error(t, err, "zeros from %d", at)
		}
	}
	_, _, err := decodeEntry(append(bytes.Clone(good), 0))
	assert.ErrorIs(t, err, errTruncated)
}

// resealed returns b with a valid checksum, so that the checks behind it are met.
func resealed(b []byte) []byte {
	sum := checksum(b)
	copy(b[sumAt:], sum[:])
	return b
}

func TestReasons(t *testing.T) {
	version := encoded(t, testKey(1), testEntry(1))
	version[8]++
	_, _, err := decodeEntry(resealed(version))
	assert.ErrorIs(t, err, errVersion)

	kind := encoded(t, testKey(1), testEntry(1))
	copy(kind[preamble+2:], "kernal")
	_, _, err = decodeEntry(resealed(kind))
	assert.ErrorContains(t, err, "the key does not match its fields")

	magic := encoded(t, testKey(1), testEntry(1))
	magic[0] = 'F'
	_, _, err = decodeEntry(magic)
	assert.ErrorContains(t, err, "magic")

	long := encoded(t, testKey(1), testEntry(1))
	binary.LittleEndian.PutUint64(long[16:], math.MaxUint64)
	_, _, err = decodeEntry(long)
	assert.ErrorIs(t, err, errTruncated)
}

func TestEncodeLimits(t *testing.T) {
	_, err := encodeEntry(testKey(1), Entry{Sections: []Section{{Name: string(make([]byte, 70000))}}})
	assert.ErrorContains(t, err, "a name of 70000 bytes")
	_, err = encodeEntry(testKey(1), Entry{Sections: make([]Section, 70000)})
	assert.ErrorContains(t, err, "70000 sections")
	for n, ok := range map[int]bool{math.MaxUint16: true, math.MaxUint16 + 1: false} { // what a count of 16 bits holds
		for _, e := range []Entry{{Sections: make([]Section, n)}, {Sections: []Section{{Name: string(make([]byte, n))}}}} {
			b, err := encodeEntry(testKey(1), e)
			require.Equal(t, ok, err == nil, n)
			if ok {
				_, got, err := decodeEntry(b)
				require.NoError(t, err)
				assert.Len(t, got.Sections, len(e.Sections))
			}
		}
	}
}

// Whatever decodes must encode to the same bytes: one entry, one file.
func FuzzEntry(f *testing.F) {
	good := encoded(f, testKey(1), testEntry(1))
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(good[:preamble])
	f.Add(encoded(f, NewKey(Plan).Sum(), Entry{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, sealIfLong(b)} {
			var k Key
			var e Entry
			var err error
			n := fuzztest.Allocated(func() { k, e, err = decodeEntry(b) })
			if n > int64(16*len(b)+1<<20) {
				t.Fatalf("%d bytes were allocated for an entry of %d", n, len(b))
			}
			if err != nil {
				continue
			}
			again, err := encodeEntry(k, e)
			if err != nil || !bytes.Equal(again, b) {
				t.Fatalf("decoded entry encodes to other bytes: %v", err)
			}
		}
	})
}

func sealIfLong(b []byte) []byte {
	if len(b) < preamble {
		return b
	}
	return resealed(bytes.Clone(b))
}

func TestKeysTellFieldsApart(t *testing.T) {
	sums := map[Hash]string{}
	for name, k := range map[string]Key{
		"kind":   NewKey(Plan).String("a", "1").Sum(),
		"string": NewKey(Kernel).String("a", "1").Sum(),
		"bytes":  NewKey(Kernel).Bytes("a", []byte("1")).Sum(),
		"int":    NewKey(Kernel).Int("a", 1).Sum(),
		"bool":   NewKey(Kernel).Bool("a", true).Sum(),
		"false":  NewKey(Kernel).Bool("a", false).Sum(),
		"name":   NewKey(Kernel).String("b", "1").Sum(),
		"shift":  NewKey(Kernel).String("a1", "").Sum(),
		"split":  NewKey(Kernel).String("a", "").String("1", "").Sum(),
		"empty":  NewKey(Kernel).Sum(),
		"struct": NewKey(Kernel).Struct("a", struct{ B float64 }{1}).Sum(),
		"slice":  NewKey(Kernel).Struct("a", []uint8{1}).Sum(),
		"slices": NewKey(Kernel).Struct("a", [][]uint8{{1}, {}}).Sum(),
	} {
		assert.Empty(t, sums[k.Sum], name)
		sums[k.Sum] = name
	}
	assert.Equal(t, testKey(3), testKey(3))
	assert.PanicsWithValue(t, "BUG: cache: key field f has type func, which cannot be hashed", func() {
		NewKey(Plan).Struct("f", func() {})
	})
	assert.Panics(t, func() { NewKey("../x") })
}

func TestDifferNamesFields(t *testing.T) {
	type options struct {
		Fast bool
		arch int
	}
	a := NewKey(Plan).String("source", "x").Struct("options", options{true, 90}).Sum()
	b := NewKey(Plan).String("source", "x").Struct("options", options{true, 80}).Int("new", 1).Sum()
	assert.Equal(t, []string{"options.arch", "new"}, a.Differ(b))
	assert.Equal(t, []string{"options.arch", "new"}, b.Differ(a))
	assert.Empty(t, a.Differ(a))
}

// TestReaderTakes: any number of bytes up to those that are left is taken, none too; more are not, and nothing is then.
func TestReaderTakes(t *testing.T) {
	for n := -1; n <= 4; n++ {
		r := &reader{rest: []byte("abc")}
		got := r.take(n)
		assert.Equal(t, n < 0 || n > 3, r.short, n)
		if !r.short {
			assert.Equal(t, "abc"[:n], string(got))
			assert.Equal(t, "abc"[n:], string(r.rest))
		} else {
			assert.Nil(t, r.take(1), "after %d", n)
		}
	}
}
