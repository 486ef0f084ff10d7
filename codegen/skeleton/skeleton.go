// Package skeleton holds the CUDA text that is the same in all kernels: types and functions that the
// spelled text calls. Each file is for what its name says; prelude.cuh is in front of every kernel.
package skeleton

import (
	"embed"
	"strings"
	"sync"
)

//go:embed *.cuh
var files embed.FS

var texts = sync.OnceValue(func() map[string]string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	out := map[string]string{}
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic("BUG: " + err.Error())
		}
		out[strings.TrimSuffix(e.Name(), ".cuh")] = string(text)
	}
	return out
})

// Text joins the texts of files, by their names without .cuh.
func Text(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		text, ok := texts()[name]
		if !ok {
			panic("BUG: there is no " + name + ".cuh")
		}
		b.WriteString(text)
	}
	return b.String()
}

// All lists all texts, in no order.
func All() []string {
	var out []string
	for _, text := range texts() {
		out = append(out, text)
	}
	return out
}
