//go:build linux && !nocuda

package fakecuda

import "github.com/ebitengine/purego"

// noLoader says why this build can open no library; "" where it can.
const noLoader = ""

// bind opens the library and sets functions to its controls.
func bind(path string, controls map[string]any) error {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	for name, into := range controls {
		purego.RegisterLibFunc(into, lib, "fake_"+name)
	}
	return nil
}
