package fuse

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// boundariesFile holds a line for each program of sweeps and device: the numbers on both sides of where the
// planner changes its mind, each with a hash of the plan and a character for each line of it.
const boundariesFile = "../testdata/boundaries.txt"

const boundariesHead = `# Where the planner changes its mind: program, device, and for each number on either side of such a place a hash
# of the plan and a character for each line of it. The programs are in fuse/boundaries_programs_test.go.
# UPDATE=1 go test -run TestBoundaries ./fuse looks for the places and writes this file anew, in a minute.
`

// sweepArchs are what programs are planned for: warpgroups and the tensor copy engine, and neither.
var sweepArchs = []string{"sm_90a", "sm_80"}

// TestBoundaries names the programs, and the numbers, that are planned otherwise than the committed hashes say.
// No result is wrong where a threshold of speed has moved, so no other test notices. Here each place where
// the plan of a program changes, as one number of it grows, is looked at from both sides: unless FUSEC_TEST_FULL is set, at
// one such place in four, which the program's text there draws.
func TestBoundaries(t *testing.T) {
	update := os.Getenv("UPDATE") == "1"
	text, err := os.ReadFile(boundariesFile)
	if !update {
		require.NoError(t, err)
	}
	before, known := readPins(t, string(text))
	lines := make([]string, len(sweeps)*len(sweepArchs))
	t.Run("programs", func(t *testing.T) { // ends when all of them have
		for i, s := range sweeps {
			for j, arch := range sweepArchs { // those that -run leaves out stay
				lines[i*len(sweepArchs)+j] = known[s.name+" "+arch]
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				for j, arch := range sweepArchs {
					name := s.name + " " + arch
					if update {
						lines[i*len(sweepArchs)+j] = fmt.Sprintln(append([]any{name}, s.pins(t, arch)...)...)
						continue
					}
					assert.Contains(t, before, name, "it has no line in %s", boundariesFile)
					for k, p := range before[name] {
						if draws(arch+s.text(before[name][k/2*2].n), 4) {
							p.check(t, s, arch)
						}
					}
				}
			})
		}
	})
	if update {
		require.NoError(t, os.WriteFile(boundariesFile, []byte(boundariesHead+strings.Join(lines, "")), 0o644))
		return
	}
	assert.Equal(t, len(lines), len(before), "programs in %s", boundariesFile)
}

// plan plans the program with the number n.
func (s swept) plan(t rapid.TB, arch string, n int64) *ir.Plan {
	t.Helper()
	d, err := ir.DeviceNamed(arch)
	require.NoError(t, err)
	if s.figure != nil {
		s.figure(&d, n)
	}
	p, err := Plan(parse(t, s.text(n)), Options{Device: d})
	require.NoError(t, err, "%s for %s at %d", s.name, arch, n)
	return p
}

// A pin is what is known of the plan at a number.
type pin struct {
	n           int64
	hash, lines string // of the text, and a character for each line of it
}

func pinOf(n int64, p *ir.Plan) pin {
	text := ir.PrintPlan(p)
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString(digest(line, 1))
	}
	return pin{n, digest(text, 4), lines.String()}
}

// digest is so many characters that tell a text from others.
func digest(text string, characters int) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:characters]
}

func (p pin) String() string { return fmt.Sprintf("%d:%s:%s", p.n, p.hash, p.lines) }

// readPins reads what is known of each program and device, and the lines that say so.
func readPins(t *testing.T, text string) (pins map[string][]pin, lines map[string]string) {
	t.Helper()
	pins, lines = map[string][]pin{}, map[string]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] != "#" {
			name := f[0] + " " + f[1]
			pins[name], lines[name] = parsePins(t, f[2:]), line
		}
	}
	return pins, lines
}

func parsePins(t *testing.T, fields []string) (out []pin) {
	for _, f := range fields {
		parts := strings.Split(f, ":")
		require.Len(t, parts, 3, f)
		n, err := strconv.ParseInt(parts[0], 10, 64)
		require.NoError(t, err)
		out = append(out, pin{n, parts[1], parts[2]})
	}
	return out
}

// check compares a plan with what was known of it, and shows the first line that is another.
func (p pin) check(t *testing.T, s swept, arch string) {
	t.Helper()
	plan := s.plan(t, arch, p.n)
	if now := pinOf(p.n, plan); now != p {
		lines := strings.Split(ir.PrintPlan(plan), "\n")
		at := 0
		for at < min(len(p.lines), len(now.lines)) && p.lines[at] == now.lines[at] {
			at++
		}
		t.Errorf("%s for %s is planned otherwise at %d. Of %d lines, now %d, the first other one is line %d, now:\n%s\nThe program is\n%s",
			s.name, arch, p.n, len(p.lines), len(now.lines), at+1, strings.Join(lines[at:min(at+3, len(lines))], "\n"), s.text(p.n))
	}
}

// mostPlaces is how many places of a walk are looked at. Where there are more, most of them are alike: what changes is
// how much a thread does.
const mostPlaces = 8

// pins looks for the numbers on both sides of where the decisions change, and pins the plans there.
func (s swept) pins(t *testing.T, arch string) (out []any) {
	known := map[int64]string{}
	decided := func(n int64) string {
		if known[n] == "" {
			known[n] = s.decisions(s.plan(t, arch, n))
		}
		return known[n]
	}
	met, pinned := map[[2]string]bool{}, []int64{}
	for _, w := range s.walks {
		places := w.changes(decided)
		places = slices.DeleteFunc(places, func(at [2]int64) bool {
			change := [2]string{known[at[0]], known[at[1]]}
			before := met[change]
			met[change] = true
			return before
		})
		if len(places) == 0 {
			pinned = append(pinned, w.from, w.to)
		}
		for i := range min(len(places), mostPlaces) {
			at := places[i*len(places)/min(len(places), mostPlaces)]
			pinned = append(pinned, at[:]...)
		}
	}
	slices.Sort(pinned)
	for _, n := range slices.Compact(pinned) {
		out = append(out, pinOf(n, s.plan(t, arch, n)))
	}
	return out
}

// changes are neighbours of a walk for which something differs: all such where it changes once between two of the
// numbers that are tried first.
func (w walk) changes(of func(int64) string) (out [][2]int64) {
	var between func(low, high int64)
	between = func(low, high int64) {
		switch middle := low + (high-low)/w.step/2*w.step; {
		case of(low) == of(high):
		case middle == low:
			out = append(out, [2]int64{low, high})
		default:
			between(low, middle)
			between(middle, high)
		}
	}
	last := w.from
	for k := int64(1); last < w.to; k *= 2 {
		for _, next := range []int64{3 * k / 2, 2 * k} {
			if at := min(w.from+(next-1)*w.step, w.to); at > last {
				between(last, at)
				last = at
			}
		}
	}
	return out
}

var numbers = regexp.MustCompile(`[0-9]+`)

// decisions are the strategies and schedules of a plan, but for amounts that are what the device has; and its text
// without numbers, unless that grows with n.
func (s swept) decisions(p *ir.Plan) string {
	var out strings.Builder
	for _, k := range p.Kernels {
		fmt.Fprintln(&out, len(k.Rows), len(k.Cols))
		for _, v := range k.Variants {
			schedule := v.Schedule
			schedule.Shared, schedule.Blocks = 0, 0
			fmt.Fprintln(&out, ir.StrategyOf(k, schedule), schedule)
		}
	}
	if s.grows {
		return out.String()
	}
	return out.String() + numbers.ReplaceAllString(ir.PrintPlan(p), "#")
}

// TestWalks: each place of a function of few changes is found.
func TestWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := walk{rapid.Int64Range(0, 9).Draw(t, "from"), 0, rapid.Int64Range(1, 16).Draw(t, "step")}
		steps := rapid.Int64Range(1, 3000).Draw(t, "steps")
		w.to = w.from + steps*w.step
		at := rapid.Int64Range(1, steps).Draw(t, "place")
		got := w.changes(func(n int64) string { return fmt.Sprint(n < w.from+at*w.step) })
		assert.Equal(t, [][2]int64{{w.from + (at-1)*w.step, w.from + at*w.step}}, got)
	})
}
