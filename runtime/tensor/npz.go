package tensor

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
)

// Want tells the reader of an archive which type to expect of the named array
// (ir.Invalid: any) and whether to read it at all.
type Want func(name string) (t ir.DType, read bool)

// ReadNPZFile reads the arrays of an .npz archive, stored or deflated, by name
// (without .npy). A nil want reads them all. Errors name the file and the array.
func ReadNPZFile(path string, want Want) (map[string]*Tensor, error) {
	f, info, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, npzError(path, err)
	}
	return readNPZ(z, info.Size(), path, want)
}

func npzError(path string, err error) error {
	if errors.Is(err, zip.ErrFormat) {
		return fmt.Errorf("%s: not an .npz archive, or truncated: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

func readNPZ(z *zip.Reader, size int64, path string, want Want) (map[string]*Tensor, error) {
	out := make(map[string]*Tensor, len(z.File))
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, ".npy")
		t, read := ir.Invalid, true
		if want != nil {
			t, read = want(name)
		}
		if !read {
			continue
		}
		if out[name] != nil {
			return nil, fmt.Errorf("%s: array %q is there twice", path, name)
		}
		x, err := readMember(f, size, t)
		if err != nil {
			return nil, fmt.Errorf("%s: array %q: %w", path, name, err)
		}
		out[name] = x
	}
	return out, nil
}

// readMember reads one array. The sizes that the archive claims are believed only
// as far as they can be true: a member lies within the archive of the given size,
// and deflate compresses by 1032 to 1 at most.
func readMember(f *zip.File, size int64, want ir.DType) (*Tensor, error) {
	if f.CompressedSize64 > uint64(size) || f.UncompressedSize64/1032 > f.CompressedSize64 {
		return nil, fmt.Errorf("corrupt archive: %d bytes claim to hold %d compressed ones, and those %d",
			size, f.CompressedSize64, f.UncompressedSize64)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return ReadNPY(r, int64(f.UncompressedSize64), want)
}

// WriteNPZ writes the arrays as an .npz archive, in the order of their names,
// deflated or stored as they are.
func WriteNPZ(w io.Writer, arrays map[string]*Tensor, deflate bool) error {
	z := zip.NewWriter(w)
	method := zip.Store
	if deflate {
		method = zip.Deflate
	}
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		member, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err == nil {
			err = WriteNPY(member, arrays[name])
		}
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
	}
	return z.Close()
}

// WriteNPZFile writes an .npz file: complete, or not at all.
func WriteNPZFile(path string, arrays map[string]*Tensor, deflate bool) error {
	return writeFile(path, func(w io.Writer) error { return WriteNPZ(w, arrays, deflate) })
}
