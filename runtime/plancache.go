package runtime

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
)

// A Request is everything that a Program depends on, except the files that its source imports:
// the cache remembers and compares those. NVRTC is not part of it, because it does not affect
// the program's text.
type Request struct {
	Name    string // of the source, as it stands in positions
	Source  []byte
	Graph   string    // "" for the only one
	Options any       // a struct: see cache.KeyBuilder.Struct
	Device  ir.Device // planned for
	Choices string    // names the measured choices that it was planned with; "" for none
}

// PlanCache keeps programs on disk, so that a known source need not be parsed,
// planned and spelled again. It is safe for concurrent use.
type PlanCache struct {
	store *cache.Cache
	build func() string
}

// NewPlanCache returns a cache of programs in store.
func NewPlanCache(store *cache.Cache) *PlanCache {
	return &PlanCache{store: store, build: sync.OnceValue(buildIdentity)}
}

// Key is the key of a request's program.
func (c *PlanCache) Key(r Request) cache.Key {
	return cache.NewKey(cache.Plan).String("name", r.Name).Bytes("source", r.Source).String("graph", r.Graph).
		Struct("options", r.Options).Struct("device", r.Device).String("choices", r.Choices).
		String("build", c.build()).Sum()
}

// The sections of an entry.
const (
	programSection = "program"
	importsSection = "imports" // names and hashes
)

// Get returns the stored program. read gives the present text of an imported file;
// a program whose imports have changed since is not there.
func (c *PlanCache) Get(r Request, read func(name string) ([]byte, error)) (*ir.Program, bool) {
	entry, outcome := c.store.Get(c.Key(r))
	if !outcome.IsHit() || !importsSame(entry.Section(importsSection), read) {
		return nil, false
	}
	p, err := DecodeProgram(entry.Section(programSection))
	return p, err == nil
}

// Put stores a program with the texts of the files that its source imports,
// directly or not, by the names they are read by.
func (c *PlanCache) Put(r Request, imports map[string][]byte, p *ir.Program) {
	c.store.Put(c.Key(r), cache.Entry{Sections: []cache.Section{
		{Name: programSection, Data: EncodeProgram(p)}, {Name: importsSection, Data: encodeImports(imports)}}})
}

func encodeImports(imports map[string][]byte) []byte {
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		sum := sha256.Sum256(imports[name])
		out = append(binary.AppendUvarint(out, uint64(len(name))), name...)
		out = append(out, sum[:]...)
	}
	return out
}

// importsSame reports whether every import is unchanged.
func importsSame(stored []byte, read func(name string) ([]byte, error)) bool {
	for len(stored) > 0 {
		n, width := binary.Uvarint(stored)
		longest := len(stored) - width - sha256.Size // that a name may be
		if width <= 0 || longest < 0 || n > uint64(longest) || read == nil {
			return false
		}
		name, rest := string(stored[width:][:n]), stored[width+int(n):]
		text, err := read(name)
		if err != nil || sha256.Sum256(text) != [sha256.Size]byte(rest[:sha256.Size]) {
			return false
		}
		stored = rest[sha256.Size:]
	}
	return true
}

// buildIdentity names this executable, because plans are only valid for the build that made
// them. The linker's build id is a hash of the contents and quick to read; without one, the
// size and time of the file are used.
func buildIdentity() string {
	path, err := os.Executable()
	if err != nil {
		info, _ := debug.ReadBuildInfo()
		return goruntime.Version() + fmt.Sprint(info)
	}
	if id := linkerID(path); id != "" {
		return id
	}
	info, err := os.Stat(path)
	if err != nil {
		return goruntime.Version() + path
	}
	return fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano())
}

// linkerID is the build id that Go's linker leaves in ELF files; "" for none.
func linkerID(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	section := f.Section(".note.go.buildid")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	const header = 16 // sizes of name and contents, type, and the name "Go\0\0"
	if err != nil || len(note) <= header {
		return ""
	}
	return string(note[header:])
}
