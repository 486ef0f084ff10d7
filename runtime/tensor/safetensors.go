package tensor

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
)

// A .safetensors file is eight bytes with the length of a header, the header, which is a
// JSON object of arrays by name, and the elements of all arrays, in row-major order and
// little-endian. The format has no checksum.

// maxSafetensorsHeader is what the format's own reader takes at most.
const maxSafetensorsHeader = 100 << 20

// safetensorsTypes are the format's names of types.
var safetensorsTypes = map[string]ir.DType{
	"BOOL": ir.Bool, "U8": ir.U8, "I8": ir.I8, "I16": ir.I16, "I32": ir.I32, "U32": ir.U32, "I64": ir.I64,
	"F16": ir.F16, "BF16": ir.BF16, "F32": ir.F32, "F64": ir.F64, "F8_E4M3": ir.F8E4M3, "F8_E5M2": ir.F8E5M2,
}

// metadataKey is the entry of a header that is no array.
const metadataKey = "__metadata__"

// safetensor is one array of a header. Offsets are in bytes after the header: where the
// elements begin and where they end.
type safetensor struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets *[2]int64 `json:"data_offsets"`
}

// ReadSafetensorsFile reads the arrays of a .safetensors file by name. A nil want reads
// them all. Errors name the file and the array; an array that does not fit in memory is
// an *ir.MemoryError.
func ReadSafetensorsFile(path string, want Want) (map[string]*Tensor, error) {
	f, info, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out, err := readSafetensors(f, info.Size(), want)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

func readSafetensors(f *os.File, size int64, want Want) (map[string]*Tensor, error) {
	header, err := safetensorsHeader(f, size)
	if err != nil {
		return nil, err
	}
	return header.readAll(f, size, want)
}

// safetensorsList is a header: the arrays, where their elements begin, and the texts of the metadata.
type safetensorsList struct {
	arrays map[string]safetensor
	start  int64
	meta   map[string]string
}

// readAll reads the arrays that want takes from a file of the given size.
func (h *safetensorsList) readAll(f io.ReaderAt, size int64, want Want) (map[string]*Tensor, error) {
	list, start := h.arrays, h.start
	var err error
	out := map[string]*Tensor{}
	left := size - start // bytes that belong to no array read so far: arrays do not share bytes
	for _, name := range slices.Sorted(maps.Keys(list)) {
		t, read := ir.Invalid, true
		if want != nil {
			t, read = want(name)
		}
		if !read {
			continue
		}
		if out[name], err = list[name].read(f, start, size-start, t); err != nil {
			return nil, fmt.Errorf("array %q: %w", name, err)
		}
		if left -= int64(len(out[name].Data)); left < 0 {
			return nil, fmt.Errorf("array %q: corrupt header: its elements are those of other arrays as well", name)
		}
	}
	return out, nil
}

// safetensorsHeader reads the header of a file of the given size.
func safetensorsHeader(r io.Reader, size int64) (*safetensorsList, error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, truncated("the length of the header", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if limit := min(maxSafetensorsHeader, size-8); n > uint64(max(limit, 0)) {
		return nil, fmt.Errorf("not a .safetensors file, or truncated: expected a header of at most %d bytes, found one of %d",
			max(limit, 0), n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, truncated("the header", err)
	}
	h := &safetensorsList{arrays: map[string]safetensor{}, start: 8 + int64(n)}
	return h, h.parse(text)
}

// parse reads the object of arrays entry by entry, so that a name that occurs twice is noticed.
func (h *safetensorsList) parse(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return fmt.Errorf("malformed header: expected a JSON object, found %.20q", text)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("malformed header: %w", err)
		}
		name := token.(string) // the decoder returns keys only as strings
		var entry json.RawMessage
		if err := d.Decode(&entry); err != nil {
			return fmt.Errorf("malformed header: %q: %w", name, err)
		}
		if name == metadataKey {
			if h.meta, err = parseMetadata(entry); err != nil {
				return err
			}
			continue
		}
		var a safetensor
		if err := json.Unmarshal(entry, &a); err != nil {
			return fmt.Errorf("malformed header: array %q: %w", name, err)
		}
		if _, twice := h.arrays[name]; twice {
			return fmt.Errorf("malformed header: array %q is there twice", name)
		}
		h.arrays[name] = a
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("malformed header: %w", err)
	}
	return nil
}

// read reads the elements of an array, from a file whose elements are so many bytes from
// start on.
func (a safetensor) read(f io.ReaderAt, start, bytes int64, want ir.DType) (*Tensor, error) {
	t, known := safetensorsTypes[a.DType]
	switch {
	case !known:
		return nil, fmt.Errorf("element type %.20q is not supported: expected one of %v", a.DType,
			slices.Sorted(maps.Keys(safetensorsTypes)))
	case want != ir.Invalid && want != t:
		return nil, fmt.Errorf("expected elements of type %v, found %v", want, t)
	case a.Offsets == nil:
		return nil, fmt.Errorf("malformed header: expected data_offsets")
	}
	n, err := byteSize(t, a.Shape)
	if err != nil {
		return nil, err
	}
	x := &Tensor{DType: t, Shape: clone(a.Shape)}
	from, to := a.Offsets[0], a.Offsets[1]
	switch {
	case from < 0 || to < from || to > bytes:
		return nil, fmt.Errorf("the elements lie from byte %d to %d, and the file has %d of them: it is truncated or corrupt",
			from, to, bytes)
	case to-from != int64(n):
		return nil, fmt.Errorf("expected %d bytes of elements for %v, found %d", n, x, to-from)
	}
	if err := x.admit(n); err != nil {
		return nil, err
	}
	x.Data = make([]byte, n)
	if _, err := f.ReadAt(x.Data, start+from); err != nil && n > 0 {
		return nil, truncated(fmt.Sprintf("the %d bytes of %v", n, x), err)
	}
	(&stored{Tensor: x}).normalise()
	return x, nil
}

// WriteSafetensors writes the arrays in the order of their names. The elements begin at a
// multiple of 8 bytes.
func WriteSafetensors(w io.Writer, arrays map[string]*Tensor) error {
	return writeSafetensors(w, arrays, nil)
}

// writeSafetensors is WriteSafetensors with metadata; nil for none.
func writeSafetensors(w io.Writer, arrays map[string]*Tensor, meta map[string]string) error {
	names := map[ir.DType]string{}
	for name, t := range safetensorsTypes {
		names[t] = name
	}
	list, at := map[string]any{}, int64(0)
	if meta != nil {
		list[metadataKey] = meta
	}
	order := slices.Sorted(maps.Keys(arrays))
	for _, name := range order {
		x := arrays[name]
		if err := x.Check(); err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		if name == metadataKey {
			return fmt.Errorf("array %q: the format has another use for this name", name)
		}
		next := at + int64(len(x.Data))
		list[name] = safetensor{names[x.DType], clone(x.Shape), &[2]int64{at, next}}
		at = next
	}
	header, err := json.Marshal(list)
	if err != nil {
		return err
	}
	header = append(header, bytes.Repeat([]byte{' '}, (8-len(header)%8)%8)...)
	out := bufio.NewWriter(w)
	out.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) // the writer keeps the first error for Flush
	out.Write(header)
	for _, name := range order {
		out.Write(arrays[name].Data)
	}
	return out.Flush()
}

// WriteSafetensorsFile writes a .safetensors file: complete, or not at all.
func WriteSafetensorsFile(path string, arrays map[string]*Tensor) error {
	return writeFile(path, func(w io.Writer) error { return WriteSafetensors(w, arrays) })
}
