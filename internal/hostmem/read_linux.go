package hostmem

import (
	"bytes"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// Read returns the memory that the machine, the control groups that the process is in,
// and its limit on the address space leave it; known is false where the system does not
// tell.
func Read() (s Space, known bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || limit.Cur > math.MaxInt64 {
		limit.Cur = math.MaxInt64
	}
	return system{"/", int64(limit.Cur), handedOut()}.read()
}

// system is where to look, and what the files do not tell.
type system struct {
	root      string // of the files
	address   int64  // bytes that the process may map
	handedOut int64
}

func (y system) read() (s Space, known bool) {
	machine := y.table("proc/meminfo")
	total, available := machine["MemTotal:"], machine["MemAvailable:"]
	if total == 0 {
		return s, false
	}
	const kB = 1024
	s = Space{Total: (total + machine["SwapTotal:"]) * kB, Free: (available + machine["SwapFree:"]) * kB}
	for _, g := range y.groups() {
		s.Total, s.Free = min(s.Total, g.Total), min(s.Free, g.Free)
	}
	mapped, resident := y.process()
	// What was handed out and never touched is free in the books of the system. It is
	// spoken for all the same.
	s.Free -= max(0, y.handedOut-resident)
	s.Total, s.Free = min(s.Total, y.address), min(s.Free, y.address-mapped)
	s.Free = max(0, s.Free)
	return s, true
}

// table reads a file of names and numbers.
func (y system) table(name string) map[string]int64 {
	out := map[string]int64{}
	for line := range bytes.Lines(y.file(name)) {
		if fields := strings.Fields(string(line)); len(fields) > 1 {
			out[fields[0]], _ = strconv.ParseInt(fields[1], 10, 64)
		}
	}
	return out
}

func (y system) file(name string) []byte {
	text, err := os.ReadFile(path.Join(y.root, name))
	if err != nil {
		return nil // the system has no such thing
	}
	return text
}

// process returns the bytes that the process has mapped, and those in memory that are
// its own.
func (y system) process() (mapped, resident int64) {
	fields := strings.Fields(string(y.file("proc/self/statm")))
	if len(fields) < 3 {
		return 0, 0
	}
	var pages [3]int64 // mapped, in memory, of those shared
	for i := range pages {
		pages[i], _ = strconv.ParseInt(fields[i], 10, 64)
	}
	size := int64(os.Getpagesize())
	return pages[0] * size, (pages[1] - pages[2]) * size
}

// groups returns what each of the process's control groups, and those above them, allow,
// of both versions of control groups.
func (y system) groups() []Space {
	var out []Space
	for line := range bytes.Lines(y.file("proc/self/cgroup")) {
		_, rest, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		kind := groupFiles{}
		switch {
		case controllers == "":
			kind = groupFiles{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "active_file"}
		case hasWord(controllers, "memory"):
			kind = groupFiles{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file", "total_active_file"}
		default:
			continue
		}
		for at := path.Join("/", group); ; at = path.Dir(at) { // a container may see its own group as the root
			if g, ok := y.group(kind, path.Join(kind.mount, at)); ok {
				out = append(out, g)
			}
			if at == "/" {
				break
			}
		}
	}
	return out
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// groupFiles are the names of a version of control groups.
type groupFiles struct{ mount, limit, usage, inactive, active string }

// group returns what a control group allows. Copies of files that it holds give way.
func (y system) group(k groupFiles, at string) (Space, bool) {
	limit, err := strconv.ParseInt(strings.TrimSpace(string(y.file(path.Join(at, k.limit)))), 10, 64)
	if err != nil { // "max", or no such group
		return Space{}, false
	}
	usage, _ := strconv.ParseInt(strings.TrimSpace(string(y.file(path.Join(at, k.usage)))), 10, 64)
	stat := y.table(path.Join(at, "memory.stat"))
	return Space{Total: limit, Free: limit - usage + stat[k.inactive] + stat[k.active]}, true
}
