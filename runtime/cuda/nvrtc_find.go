package cuda

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FindOptions narrow the search for NVRTC. The zero value searches everywhere.
type FindOptions struct {
	// Path is a file or folder to look at, and nowhere else; where it is "", the
	// environment variable FUSEC_NVRTC says the same.
	Path string
	// MaxMajor refuses newer major versions than the driver's, whose cubins the
	// driver may not load; 0 for no bound.
	MaxMajor int
}

// A Location is an NVRTC library file: found, not necessarily opened.
type Location struct {
	Path    string // with symbolic links resolved
	Size    int64  // bytes
	ModTime time.Time
	BuildID string    // the linker's hash of the contents, in hexadecimal; "" for none
	Place   string    // which of the places searched it was in, in words
	Trail   []Attempt // what was looked at before it, and why it was refused
}

// An Attempt is a place that was searched in vain.
type Attempt struct {
	Place  string // in words: "CUDA_HOME"
	Path   string // folder or file
	Reason string
}

// Identity names the contents of this file, for keys of caches: by its build id,
// which is the same on every machine with that NVRTC, or where it has none by path,
// size and time, which change when the file is replaced. Locate and FindNVRTC give the
// same one.
func (l Location) Identity() string {
	if l.BuildID != "" {
		return "build id " + l.BuildID
	}
	return fmt.Sprintf("%s %d %d", l.Path, l.Size, l.ModTime.UnixNano())
}

// A NotFoundError says where NVRTC was searched for. It matches ErrNoNVRTC.
type NotFoundError struct {
	Trail []Attempt
}

// Error says what to do; the trail is for those who ask.
func (e *NotFoundError) Error() string {
	if len(e.Trail) == 1 {
		a := e.Trail[0]
		return fmt.Sprintf("no NVRTC in %s (%s): %s", a.Path, a.Place, a.Reason)
	}
	return fmt.Sprintf("no NVRTC in any of %d places: run scripts/get-nvrtc, install the CUDA toolkit, "+
		"or set FUSEC_NVRTC to the folder that holds libnvrtc.so", len(e.Trail))
}

// Unwrap gives ErrNoNVRTC.
func (e *NotFoundError) Unwrap() error { return ErrNoNVRTC }

// Locate finds the file that FindNVRTC would open, without opening it, in a millisecond or two.
// The two differ only if the file looks right but does not open.
func Locate(options FindOptions) (Location, error) {
	return newFinder().search(options, func(Location) error { return nil })
}

// FindNVRTC opens the first usable NVRTC, of version 11.2 or newer. It looks in
// FUSEC_NVRTC (where set, nowhere else), the loader's path, CUDA_HOME and
// CUDA_PATH, the usual toolkit folders, Python's wheels, and the folder that
// scripts/get-nvrtc fills; in each folder at the newest version first. Where there
// is none the error is a *NotFoundError.
func FindNVRTC(options FindOptions) (*NVRTC, error) {
	if noLoader != "" {
		return nil, fmt.Errorf("%w: %s", ErrNoNVRTC, noLoader)
	}
	var found *NVRTC
	at, err := newFinder().search(options, func(at Location) (err error) {
		found, err = openNVRTC(at)
		return err
	})
	if err != nil {
		return nil, err
	}
	found.location = at
	return found, nil
}

// A finder searches a file system; root and getenv are other than the machine's own
// in tests.
type finder struct {
	root   string // prefixed to the folders that the machine, not the user, names
	getenv func(string) string
}

func newFinder() *finder { return &finder{getenv: os.Getenv} }

// search gives the first location that accept takes.
func (f *finder) search(options FindOptions, accept func(Location) error) (Location, error) {
	var trail []Attempt
	seen := map[string]bool{}
	for _, place := range f.places(options.Path) {
		for _, path := range place.paths() {
			if seen[path] {
				continue
			}
			seen[path] = true
			at, err := examine(path, options.MaxMajor)
			if err == nil {
				err = accept(at)
			}
			if err == nil {
				at.Place, at.Trail, at.BuildID = place.name, trail, buildID(at.Path)
				return at, nil
			}
			trail = append(trail, Attempt{Place: place.name, Path: path, Reason: reasonOf(err)})
		}
	}
	return Location{}, &NotFoundError{Trail: trail}
}

// reasonOf shortens the operating system's message about a path that does not exist.
func reasonOf(err error) string {
	if errors.Is(err, os.ErrNotExist) {
		return "there is no such file or folder"
	}
	return err.Error()
}

// examine looks at a file, or at the newest library of a folder.
func examine(path string, maxMajor int) (Location, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Location{}, err
	}
	if !info.IsDir() {
		return examineFile(path, maxMajor)
	}
	names := libraries(path, "libnvrtc")
	if len(names) == 0 {
		return Location{}, errors.New("the folder holds no libnvrtc.so")
	}
	var refused []error
	for _, name := range names {
		at, err := examineFile(filepath.Join(path, name), maxMajor)
		if err == nil {
			return at, nil
		}
		refused = append(refused, fmt.Errorf("%s: %w", name, err))
	}
	return Location{}, errors.Join(refused...)
}

// examineFile refuses what dlopen would surely refuse, and wrong versions as far as
// the file's name tells.
func examineFile(path string, maxMajor int) (Location, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Location{}, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return Location{}, err
	}
	if err := checkMachine(real); err != nil {
		return Location{}, err
	}
	version := libraryVersion(filepath.Base(real))
	if maxMajor > 0 && len(version) > 0 && version[0] > maxMajor {
		return Location{}, fmt.Errorf("version %d is newer than the driver's %d", version[0], maxMajor)
	}
	return Location{Path: real, Size: info.Size(), ModTime: info.ModTime()}, nil
}

// machines: what the header of a library for this processor says.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkMachine reads the first bytes of a file: is it a library for this processor?
func checkMachine(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var header [20]byte
	if _, err := io.ReadFull(file, header[:]); err != nil || !bytes.HasPrefix(header[:], []byte(elf.ELFMAG)) {
		return errors.New("the file is not a shared library")
	}
	machine := elf.Machine(binary.LittleEndian.Uint16(header[18:]))
	if machine != machines[runtime.GOARCH] {
		return fmt.Errorf("the library is for %s, this program for %s", machine, runtime.GOARCH)
	}
	return nil
}

// libraries lists the files of a folder named STEM.so or STEM.so.VERSION, the
// newest version first and the one without a version last.
func libraries(folder, stem string) []string {
	var names []string
	for _, name := range listing(folder) {
		suffix, ok := strings.CutPrefix(name, stem+".so")
		if ok && versionSuffix.MatchString(suffix) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(slices.Compare(libraryVersion(b), libraryVersion(a)), strings.Compare(a, b))
	})
	return names
}

// buildID reads the build id of an ELF file; "" where it has none.
func buildID(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	section := f.Section(".note.gnu.build-id")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	const header = 16 // sizes of name and contents, type, and the name "GNU\0"
	if err != nil || len(note) <= header {
		return ""
	}
	return hex.EncodeToString(note[header:])
}

var versionSuffix = regexp.MustCompile(`^(\.\d+)*$`)

// listing is the names in a folder, in no order: sorting thousands of them, in the system's
// library folder, would take most of the search. A folder that cannot be listed counts as
// empty.
func listing(folder string) []string {
	dir, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return names
}

// libraryVersion is the numbers after .so: 12, 4 for libnvrtc.so.12.4.
func libraryVersion(name string) []int {
	_, suffix, _ := strings.Cut(name, ".so.")
	var version []int
	for part := range strings.SplitSeq(suffix, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		version = append(version, n)
	}
	return version
}

// builtinsBeside lists the builtins libraries in the folder of an NVRTC, each once.
func builtinsBeside(nvrtc string) []string {
	folder := filepath.Dir(nvrtc)
	var paths []string
	for _, name := range libraries(folder, "libnvrtc-builtins") {
		path, err := filepath.EvalSymlinks(filepath.Join(folder, name))
		if err == nil && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
