package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/num"
	"github.com/fusec/fusec/runtime/tensor"
)

// place is what one --in or --out names: a number, or a file; of a file of several
// arrays, the name of one.
type place struct {
	text   string // as it was given
	number bool
	path   string
	array  string // in an archive
}

// archiveKinds are the files that hold arrays by name.
var archiveKinds = []string{".npz", ".safetensors"}

// archiveKind is the kind of archive that a file is by its name, or "".
func archiveKind(path string) string {
	if kind := strings.ToLower(filepath.Ext(path)); slices.Contains(archiveKinds, kind) {
		return kind
	}
	return ""
}

// placeOf reads what stands after NAME=. An array of an archive has the name of the
// input or output, or the one after a colon: w=model.safetensors:layers.0.w.
func placeOf(name, text string) place {
	if _, err := strconv.ParseFloat(text, 64); err == nil || text == "true" || text == "false" {
		return place{text: text, number: true}
	}
	p := place{text: text, path: text}
	for _, kind := range archiveKinds {
		if at := strings.Index(strings.ToLower(text), kind+":"); at >= 0 {
			p.path, p.array = text[:at+len(kind)], text[at+len(kind)+1:]
			return p
		}
	}
	if archiveKind(text) != "" {
		p.array = name
	}
	return p
}

// places reads the flags --in or --out. A flag without a name is an archive, of all names
// that known has.
func places(flag string, given, known []string) (named map[string][]place, archives []string, err error) {
	named = map[string][]place{}
	for _, text := range given {
		name, rest, ok := strings.Cut(text, "=")
		switch {
		case !ok && archiveKind(text) != "":
			archives = append(archives, text)
		case !ok || name == "":
			return nil, nil, usagef("%s %s: expected NAME=FILE, or an archive: one of %s", flag, text,
				strings.Join(archiveKinds, ", "))
		case !slices.Contains(known, name):
			return nil, nil, fmt.Errorf("%s %s: the graph has no %s%s", flag, text, name, diag.Choices(name, known))
		default:
			named[name] = append(named[name], placeOf(name, rest))
		}
	}
	return named, archives, nil
}

// givenInputs are the places of --in by input.
func givenInputs(given []string, params []ir.Param) (named map[string]place, archives []string, err error) {
	lists, archives, err := places("--in", given, paramNames(params))
	named = map[string]place{}
	for name, list := range lists {
		if len(list) > 1 {
			return nil, nil, usagef("--in %s is given twice: %s and %s", name, list[0].text, list[1].text)
		}
		named[name] = list[0]
	}
	return named, archives, err
}

// readInputs reads the inputs that are given, into a list in the graph's order. What is not
// given stays nil.
func readInputs(given []string, params []ir.Param) ([]*tensor.Tensor, error) {
	named, archives, err := givenInputs(given, params)
	if err != nil {
		return nil, err
	}
	out := make([]*tensor.Tensor, len(params))
	for _, path := range archives {
		if err := readArchive(path, params, out); err != nil {
			return nil, err
		}
	}
	for i, p := range params {
		at, ok := named[p.Name]
		if !ok || at.number { // a number needs the input's shape: see filled
			continue
		}
		if out[i], err = at.read(p.DType); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("--in %s=%s: no such file, and no number", p.Name, at.path)
			}
			return nil, fmt.Errorf("input %s: %w", p.Name, plainPathError(err))
		}
	}
	return out, nil
}

// readArchive reads the arrays that have names of inputs.
func readArchive(path string, params []ir.Param, out []*tensor.Tensor) error {
	types, found := map[string]ir.DType{}, []string{}
	for _, p := range params {
		types[p.Name] = p.DType
	}
	arrays, err := readArrays(path, func(name string) (ir.DType, bool) {
		found = append(found, name)
		t, wanted := types[name]
		return t, wanted
	})
	if err != nil {
		return fmt.Errorf("--in %w", plainPathError(err))
	}
	if len(arrays) == 0 {
		return fmt.Errorf("--in %s: none of its arrays is an input: it has %s, the inputs are %s", path,
			diag.Names(found), diag.Names(paramNames(params)))
	}
	for i, p := range params {
		if x := arrays[p.Name]; x != nil {
			out[i] = x
		}
	}
	return nil
}

func readArrays(path string, want tensor.Want) (map[string]*tensor.Tensor, error) {
	if archiveKind(path) == ".npz" {
		return tensor.ReadNPZFile(path, want)
	}
	return tensor.ReadSafetensorsFile(path, want)
}

// read reads a file, or one array of it.
func (p place) read(t ir.DType) (*tensor.Tensor, error) {
	if p.array == "" {
		x, err := tensor.ReadNPYFile(p.path, t)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !isNPY(p.path) {
			err = fmt.Errorf("%w (files that can be read are .npy, %s)", err, strings.Join(archiveKinds, ", "))
		}
		return x, err
	}
	var names []string
	arrays, err := readArrays(p.path, func(name string) (ir.DType, bool) {
		names = append(names, name)
		return t, name == p.array
	})
	if err != nil {
		return nil, err
	}
	if arrays[p.array] == nil {
		return nil, fmt.Errorf("%s has no array %s%s", p.path, p.array, diag.Choices(p.array, names))
	}
	return arrays[p.array], nil
}

// filled is a tensor whose elements all are the number.
func (p place) filled(t ir.DType, shape []int) (*tensor.Tensor, error) {
	x, err := tensor.New(t, shape...)
	if err != nil {
		return nil, err
	}
	var element []byte
	if t.IsFloat() {
		v, err := strconv.ParseFloat(p.text, 64)
		if err != nil {
			return nil, fmt.Errorf("expected a number of %s, found %s", t, p.text)
		}
		element = make([]byte, t.Size())
		num.FromFloat64s(element, t, []float64{v})
	} else if element, err = p.integer(t); err != nil {
		return nil, err
	}
	for at := 0; at < len(x.Data); at += len(element) {
		copy(x.Data[at:], element)
	}
	return x, nil
}

// integer is the number as an element of an integer type, or of bool.
func (p place) integer(t ir.DType) ([]byte, error) {
	v, err := strconv.ParseInt(p.text, 10, 64)
	switch {
	case t == ir.Bool && (p.text == "true" || p.text == "false"):
		v, err = int64(strings.Index("ft", p.text[:1])), nil
	case errors.Is(err, strconv.ErrRange) || err == nil && !fits(v, t):
		return nil, fmt.Errorf("%s is out of the range of %s", p.text, t)
	}
	if err != nil {
		return nil, fmt.Errorf("expected a whole number of %s, found %s", t, p.text)
	}
	element := make([]byte, t.Size())
	num.FromInt64s(element, t, []int64{v})
	return element, nil
}

// fits reports whether an integer type has the value.
func fits(v int64, t ir.DType) bool {
	info := t.Info()
	if v >= 0 {
		return info.Size == 8 || float64(v) <= info.Max
	}
	return info.Signed && (info.Size == 8 || float64(v) >= -info.Max-1)
}

// writeOutputs writes what --out names. Outputs that go to one archive go there together.
func writeOutputs(given, names []string, outputs []*tensor.Tensor) error {
	named, whole, err := places("--out", given, names)
	if err != nil {
		return err
	}
	archives := map[string]map[string]*tensor.Tensor{}
	put := func(path, array string, x *tensor.Tensor) {
		if archives[path] == nil {
			archives[path] = map[string]*tensor.Tensor{}
		}
		archives[path][array] = x
	}
	for i, name := range names {
		for _, path := range whole {
			put(path, name, outputs[i])
		}
		for _, at := range named[name] {
			if at.array != "" {
				put(at.path, at.array, outputs[i])
			} else if err := tensor.WriteNPYFile(at.path, outputs[i]); err != nil {
				return fmt.Errorf("output %s: %w", name, plainPathError(err))
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(archives)) {
		write := tensor.WriteSafetensorsFile
		if archiveKind(path) == ".npz" {
			write = func(path string, x map[string]*tensor.Tensor) error { return tensor.WriteNPZFile(path, x, false) }
		}
		if err := write(path, archives[path]); err != nil {
			return fmt.Errorf("--out: %w", plainPathError(err))
		}
	}
	return nil
}

func isNPY(path string) bool { return strings.EqualFold(filepath.Ext(path), ".npy") }

// checkOut refuses an --out that cannot be, before anything runs.
func checkOut(given, names []string) error {
	named, archives, err := places("--out", given, names)
	if err != nil {
		return err
	}
	for name, list := range named {
		for _, at := range list {
			if at.number || at.array == "" && !isNPY(at.path) {
				return usagef("--out %s=%s: expected a file whose name ends in .npy, %s", name, at.text, strings.Join(archiveKinds, ", "))
			}
			archives = append(archives, at.path)
		}
	}
	for _, path := range archives {
		if folder := filepath.Dir(path); !isFolder(folder) {
			return fmt.Errorf("--out %s: there is no folder %s", path, folder)
		}
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
