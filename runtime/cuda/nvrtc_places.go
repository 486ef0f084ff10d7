package cuda

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
)

// A place is a group of folders (or single files) to search, in words and by path. The paths
// are listed only when the search gets there: most searches end early, and listing takes longer
// than looking at files.
type place struct {
	name  string
	paths func() []string
}

// places lists where to search, in order. only, or else FUSEC_NVRTC, stands alone.
func (f *finder) places(only string) []place {
	alone := func(path string) func() []string { return func() []string { return []string{path} } }
	if only != "" {
		return []place{{"the path asked for", alone(only)}}
	}
	if set := f.getenv("FUSEC_NVRTC"); set != "" {
		return []place{{"FUSEC_NVRTC", alone(set)}}
	}
	return []place{
		{"the loader's path", f.loaderPath},
		{"CUDA_HOME", func() []string { return f.toolkit(f.getenv("CUDA_HOME")) }},
		{"CUDA_PATH", func() []string { return f.toolkit(f.getenv("CUDA_PATH")) }},
		{"the usual toolkit folders", f.usual},
		{"Python's wheels", func() []string { return f.wheels("cuda_nvrtc") }},
		{"the folder of scripts/get-nvrtc", f.fetched},
	}
}

// loaderPath lists the folders in which dlopen would look for a plain name. Files are opened by
// full path, so that Locate and FindNVRTC find the same one.
func (f *finder) loaderPath() []string {
	var paths []string
	for _, folder := range filepath.SplitList(f.getenv("LD_LIBRARY_PATH")) {
		if filepath.IsAbs(folder) { // never the working directory: anyone may have put files there
			paths = append(paths, folder)
		}
	}
	for _, folder := range f.loaderCache() {
		paths = append(paths, f.root+folder)
	}
	return paths
}

// loaderCache lists the folders in which the loader's cache knows a libnvrtc, the newest
// version first. The cache's strings are paths that end in NUL; no more of its format is
// needed.
func (f *finder) loaderCache() []string {
	cache, err := os.ReadFile(f.root + "/etc/ld.so.cache")
	if err != nil {
		return nil // no cache, as on musl: nothing is known
	}
	var paths []string
	for text := range bytes.SplitSeq(cache, []byte{0}) {
		if bytes.HasPrefix(text, []byte("/")) && bytes.Contains(text, []byte("/libnvrtc.so")) {
			paths = append(paths, string(text))
		}
	}
	slices.SortStableFunc(paths, func(a, b string) int {
		return slices.Compare(libraryVersion(filepath.Base(b)), libraryVersion(filepath.Base(a)))
	})
	var folders []string
	for _, path := range paths {
		folders = append(folders, filepath.Dir(path))
	}
	return folders
}

// toolkit lists where a toolkit installed in home keeps libraries.
func (f *finder) toolkit(home string) []string {
	if home == "" {
		return nil
	}
	return f.expand(home+"/lib64", home+"/targets/*/lib", home+"/lib")
}

func (f *finder) usual() []string {
	return f.expand(
		f.root+"/usr/local/cuda/lib64",
		f.root+"/usr/local/cuda-*/lib64",
		f.root+"/usr/local/cuda-*/targets/*/lib",
		f.root+"/opt/cuda/lib64",
		f.root+"/opt/cuda/targets/*/lib",
		f.root+"/usr/lib/x86_64-linux-gnu",
		f.root+"/usr/lib/aarch64-linux-gnu",
		f.root+"/usr/lib64",
		f.root+"/usr/lib",
	)
}

// wheels lists where pip and conda put a part of the toolkit, which has a folder of its own up to CUDA 12,
// for all Pythons that are found without running one.
func (f *finder) wheels(part string) []string {
	var paths []string
	for _, python := range f.expand(f.pythons()...) {
		for _, packages := range []string{"/site-packages/nvidia", "/dist-packages/nvidia"} {
			if _, err := os.Stat(python + packages); err != nil {
				paths = append(paths, python+packages) // for the trail
				continue
			}
			paths = append(paths, f.expand(python+packages+"/cu1[0-9]/lib", python+packages+"/"+part+"/lib")...)
		}
	}
	if prefix := f.getenv("CONDA_PREFIX"); prefix != "" {
		paths = append(paths, prefix+"/lib")
	}
	return paths
}

// cuptiPlaces lists the folders in which CUPTI may be, and "" for where the loader looks. only, or else
// FUSEC_CUPTI, which may be a file too, stands alone.
func (f *finder) cuptiPlaces(only string) []string {
	if set := f.getenv("FUSEC_CUPTI"); only == "" {
		only = set
	}
	if only != "" {
		return []string{only}
	}
	const extra = "/extras/CUPTI/lib64"
	places := []string{""}
	for _, home := range []string{f.getenv("CUDA_HOME"), f.getenv("CUDA_PATH")} {
		if home != "" {
			places = append(places, append(f.toolkit(home), home+extra)...)
		}
	}
	places = append(places, f.expand(f.root+"/usr/local/cuda"+extra, f.root+"/usr/local/cuda-*"+extra, f.root+"/opt/cuda"+extra)...)
	return append(append(places, f.usual()...), f.wheels("cuda_cupti")...)
}

// pythons are patterns of the folders in which a Python keeps its packages.
func (f *finder) pythons() []string {
	var prefixes []string
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if prefix := f.getenv(name); prefix != "" {
			prefixes = append(prefixes, prefix)
		}
	}
	if home := f.getenv("HOME"); home != "" {
		prefixes = append(prefixes, home+"/.local", home+"/.pyenv/versions/*")
	}
	for _, prefix := range []string{"/usr/local", "/usr", "/opt/*", "/opt/*/.venv"} {
		prefixes = append(prefixes, f.root+prefix)
	}
	for i := range prefixes {
		prefixes[i] += "/lib/python3*"
	}
	return prefixes
}

// fetched is where scripts/get-nvrtc puts NVRTC.
func (f *finder) fetched() []string {
	cache := f.getenv("XDG_CACHE_HOME")
	if home := f.getenv("HOME"); cache == "" && home != "" {
		cache = home + "/.cache"
	}
	if cache == "" {
		return nil
	}
	return []string{cache + "/fusec/nvrtc"}
}

// expand replaces each pattern by what matches, the last in alphabetical order
// (which is the newest version, as folders are named) first. A pattern without a
// match stands for itself, so that the trail shows that it was tried.
func (f *finder) expand(patterns ...string) []string {
	var paths []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil || len(matches) == 0 { // a path with brackets in it is no pattern
			matches = []string{pattern}
		}
		slices.Sort(matches)
		slices.Reverse(matches)
		paths = append(paths, matches...)
	}
	return paths
}
