package main

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/webdav"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

var update = flag.Bool("update", false, "write what commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fusec": main, "fakepeer": fakePeer})
}

// TestScripts runs the command line as a user does. A script runs in a folder of
// its own, with the examples beside it, no cache but its own, and no colour.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	require.NoError(t, err)
	nvrtc, nvrtcErr := cuda.Locate(cuda.FindOptions{})
	if nvrtcErr != nil && os.Getenv("CI") == "true" {
		t.Fatalf("NVRTC is needed here: %v", nvrtcErr)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", examples)
			e.Setenv("FUSEC_CACHE", filepath.Join(e.WorkDir, ".cache"))
			e.Setenv("TERM", "dumb")
			store := httptest.NewServer(&webdav.Handler{FileSystem: webdav.NewMemFS(), LockSystem: webdav.NewMemLS()})
			e.Defer(store.Close)
			e.Setenv("STORE", store.URL) // a shared store, for scripts that want one
			if nvrtcErr == nil {
				e.Setenv("FUSEC_NVRTC", nvrtc.Path)
				e.Setenv("NVRTC", nvrtc.Path) // for scripts that change the other
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "nvrtc":
				return nvrtcErr == nil, nil
			case "gpu":
				return haveGPU(), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"sparse": makeSparse, "npy": makeNPY, "nested": makeNested, "truncate": truncateFile,
			"samefloats": sameFloats,
		},
	})
}

func haveGPU() bool {
	driver, err := cuda.Open()
	if err != nil {
		return false
	}
	n, err := driver.DeviceCount()
	return err == nil && n > 0
}

// makeSparse FILE BYTES makes a file that is long and takes no room.
func makeSparse(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(f.Truncate(size))
	ts.Check(f.Close())
}

// makeNPY FILE DTYPE DIM... writes a tensor of small numbers.
func makeNPY(ts *testscript.TestScript, _ bool, args []string) {
	t, ok := ir.DTypeNamed(args[1])
	if !ok {
		ts.Fatalf("no dtype %s", args[1])
	}
	var shape []int
	for _, a := range args[2:] {
		n, err := strconv.Atoi(a)
		ts.Check(err)
		shape = append(shape, n)
	}
	x, err := tensor.Random(t, 7, shape...)
	ts.Check(err)
	ts.Check(tensor.WriteNPYFile(ts.MkAbs(args[0]), x))
}

// makeNested FILE DEPTH writes a program with brackets that deep.
func makeNested(ts *testscript.TestScript, _ bool, args []string) {
	depth, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := []byte("graph g(x: f32[N]) -> (y: f32[N]) {\n    y = ")
	for range depth {
		text = append(text, '(')
	}
	text = append(text, 'x')
	for range depth {
		text = append(text, ')')
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(text, "\n}\n"...), 0o666))
}

// truncateFile FILE BYTES cuts bytes off the end of a file.
func truncateFile(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), info.Size()-n))
}

// sameFloats A B compares two .npy files, or arrays of archives: x.npz:y.
func sameFloats(ts *testscript.TestScript, neg bool, args []string) {
	a, err := placeOf("", ts.MkAbs(args[0])).read(ir.Invalid)
	ts.Check(err)
	b, err := placeOf("", ts.MkAbs(args[1])).read(ir.Invalid)
	ts.Check(err)
	if tensor.Equal(a, b) == neg {
		ts.Fatalf("%s and %s: equal is %v", args[0], args[1], !neg)
	}
}
