package cuda

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeLibrary writes a file that looks like a library for this processor.
func fakeLibrary(t *testing.T, path string) string {
	t.Helper()
	machine := machines[runtime.GOARCH]
	header := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
	header[18], header[19] = byte(machine), byte(machine>>8)
	return writeFile(t, path, header)
}

func writeFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

// testFinder searches an empty machine with the given environment.
func testFinder(t *testing.T, env map[string]string) *finder {
	return &finder{root: t.TempDir(), getenv: func(name string) string { return env[name] }}
}

func anything(Location) error { return nil }

func TestSearchOrder(t *testing.T) {
	home, venv, toolkit, path := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	env := map[string]string{"HOME": home, "VIRTUAL_ENV": venv, "CUDA_HOME": toolkit,
		"LD_LIBRARY_PATH": "relative::" + path}
	f := testFinder(t, env)
	cached := "/usr/lib/somewhere/libnvrtc.so.12"
	writeFile(t, f.root+"/etc/ld.so.cache", []byte("glibc-ld.so.cache1.1\x05\x00libm.so.6\x00/lib/libm.so.6\x00"+
		"libnvrtc.so.12\x00"+cached+"\x00"))
	wheel := "/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
	// From the last place searched to the first: each new file must win over all before it.
	for _, row := range []struct{ place, file string }{
		{"the folder of scripts/get-nvrtc", home + "/.cache/fusec/nvrtc/libnvrtc.so.12"},
		{"Python's wheels", f.root + "/opt/app/.venv" + wheel},
		{"Python's wheels", f.root + "/usr/local/lib/python3.11/dist-packages/nvidia/cu13/lib/libnvrtc.so.13"},
		{"Python's wheels", home + "/.local" + wheel},
		{"Python's wheels", venv + wheel},
		{"the usual toolkit folders", f.root + "/usr/lib/x86_64-linux-gnu/libnvrtc.so.12.4.127"},
		{"the usual toolkit folders", f.root + "/usr/local/cuda-12.4/lib64/libnvrtc.so.12"},
		{"the usual toolkit folders", f.root + "/usr/local/cuda-12.8/lib64/libnvrtc.so.12"},
		{"CUDA_HOME", toolkit + "/lib64/libnvrtc.so.12"},
		{"the loader's path", f.root + cached},
		{"the loader's path", path + "/libnvrtc.so.12"},
	} {
		want, err := filepath.EvalSymlinks(fakeLibrary(t, row.file))
		require.NoError(t, err)
		at, err := f.search(FindOptions{}, anything)
		require.NoError(t, err)
		assert.Equal(t, want, at.Path)
		assert.Equal(t, row.place, at.Place, at.Path)
	}
}

func TestNewestVersionOfAFolderWins(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"libnvrtc.so", "libnvrtc.so.9.2", "libnvrtc.so.12.10", "libnvrtc.so.12.9",
		"libnvrtc.so.13", "libnvrtc.alt.so.14", "libnvrtc-builtins.so.15", "libnvrtc_static.a"} {
		fakeLibrary(t, filepath.Join(folder, name))
	}
	f := testFinder(t, nil)
	at, err := f.search(FindOptions{Path: folder}, anything)
	require.NoError(t, err)
	assert.Equal(t, "libnvrtc.so.13", filepath.Base(at.Path))
	at, err = f.search(FindOptions{Path: folder, MaxMajor: 12}, anything)
	require.NoError(t, err)
	assert.Equal(t, "libnvrtc.so.12.10", filepath.Base(at.Path), "no newer than the driver")
}

func TestPathsThatStandAlone(t *testing.T) {
	home := t.TempDir()
	fakeLibrary(t, home+"/.cache/fusec/nvrtc/libnvrtc.so.12")
	file := fakeLibrary(t, t.TempDir()+"/any-name.so")
	f := testFinder(t, map[string]string{"HOME": home, "FUSEC_NVRTC": file})
	at, err := f.search(FindOptions{}, anything)
	require.NoError(t, err)
	assert.Equal(t, "any-name.so", filepath.Base(at.Path))

	f = testFinder(t, map[string]string{"HOME": home, "FUSEC_NVRTC": t.TempDir()})
	_, err = f.search(FindOptions{}, anything)
	assert.ErrorIs(t, err, ErrNoNVRTC, "where FUSEC_NVRTC is set, nowhere else is searched")
	assert.ErrorContains(t, err, "FUSEC_NVRTC")
	assert.ErrorContains(t, err, "holds no libnvrtc.so")
}

func TestTrailSaysWhyEachPlaceWasRefused(t *testing.T) {
	toolkit, other := t.TempDir(), t.TempDir()
	writeFile(t, toolkit+"/lib64/libnvrtc.so.12", []byte("a text file, longer than any header is"))
	wrong := fakeLibrary(t, other+"/lib64/libnvrtc.so.12")
	foreign, err := os.ReadFile(wrong)
	require.NoError(t, err)
	foreign[18] = 8 // MIPS
	writeFile(t, wrong, foreign)
	f := testFinder(t, map[string]string{"CUDA_HOME": toolkit, "CUDA_PATH": other, "LD_LIBRARY_PATH": "/absent"})
	_, err = f.search(FindOptions{}, anything)
	var missing *NotFoundError
	require.ErrorAs(t, err, &missing)
	assert.ErrorContains(t, err, "scripts/get-nvrtc")
	reasons := map[string]string{}
	for _, attempt := range missing.Trail {
		reasons[attempt.Path] = attempt.Reason
	}
	assert.Equal(t, "there is no such file or folder", reasons["/absent"])
	assert.Contains(t, reasons[toolkit+"/lib64"], "not a shared library")
	assert.Contains(t, reasons[other+"/lib64"], "EM_MIPS")
}

func TestIdentityFollowsTheFile(t *testing.T) {
	folder := t.TempDir()
	file := fakeLibrary(t, folder+"/libnvrtc.so.12.4")
	require.NoError(t, os.Symlink(file, folder+"/libnvrtc.so"))
	locate := func(path string) string {
		at, err := Locate(FindOptions{Path: path})
		require.NoError(t, err)
		return at.Identity()
	}
	first := locate(folder)
	assert.Equal(t, first, locate(folder+"/libnvrtc.so"), "a link to the file is the file")
	require.NoError(t, os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)))
	assert.NotEqual(t, first, locate(folder))
}

func TestFindSkipsWhatDoesNotOpen(t *testing.T) {
	good := requireNVRTC(t)
	broken := t.TempDir()
	fakeLibrary(t, broken+"/libnvrtc.so.12") // passes the look, not the loader
	t.Setenv("LD_LIBRARY_PATH", broken+":"+filepath.Dir(good.Location().Path))
	t.Setenv("FUSEC_NVRTC", "")
	n, err := FindNVRTC(FindOptions{})
	require.NoError(t, err)
	assert.Equal(t, good.Location().Path, n.Location().Path)
	trail := n.Location().Trail
	i := slices.IndexFunc(trail, func(a Attempt) bool { return a.Path == broken })
	require.GreaterOrEqual(t, i, 0, "the refused library is in the trail")
	assert.NotEmpty(t, trail[i].Reason)
}

func TestLibrariesWithoutTheEntryPointsAreRefused(t *testing.T) {
	_, err := openNVRTC(Location{Path: fakeDriver(t).Path})
	assert.ErrorIs(t, err, ErrMissingSymbol)
}

func BenchmarkLocate(b *testing.B) {
	for b.Loop() {
		_, _ = Locate(FindOptions{})
	}
}

// An ELF file with a build id is known by it, wherever it lies.
func TestIdentityIsTheBuildID(t *testing.T) {
	assert.Empty(t, buildID(fakeLibrary(t, filepath.Join(t.TempDir(), "libnvrtc.so"))), "it has no sections")
	assert.Empty(t, buildID(filepath.Join(t.TempDir(), "none")))
	a := Location{Path: "/a", Size: 1, BuildID: "abc"}
	assert.Equal(t, a.Identity(), Location{Path: "/b", Size: 2, BuildID: "abc"}.Identity())
	assert.NotEqual(t, a.Identity(), Location{Path: "/a", Size: 1, BuildID: "abd"}.Identity())
	assert.Regexp(t, `^build id [0-9a-f]{40}$`, requireNVRTC(t).Location().Identity())
}
