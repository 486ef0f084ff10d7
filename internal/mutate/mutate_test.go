package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests of this module notice each mistake in Largest, and none in Sum, which they do not look at.
const (
	testedText = `package tested

func Largest(x []int) int {
	best := x[0]
	for _, v := range x[1:] {
		if v > best && v != 9 {
			best = v
		}
	}
	return best
}

func Sum(x []int) (sum int) {
	for _, v := range x {
		sum += v
	}
	if sum < len(x)-1 {
		sum = 0
	}
	return sum
}
`
	testText = `package tested

import "testing"

func TestLargest(t *testing.T) {
	if got := Largest([]int{3, 9, 5, 1}); got != 5 {
		t.Fatal(got)
	}
	Sum([]int{1, 2})
}
`
)

func TestMutants(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"go.mod": "module tested\n\ngo 1.26\n", "tested.go": testedText, "tested_test.go": testText} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	require.NoError(t, command(strings.Fields("build -n 100 -out out -tests . .")))
	all, err := readMutants("out")
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, m := range all {
		kinds[m.Kind]++
		assert.Empty(t, m.Killed)
	}
	assert.NotZero(t, kinds["drop"]*kinds["negate"]*kinds["boundary"], kinds)
	require.NoError(t, command([]string{"run", "-out", "out", "-only", "tested.go", "-steps", "."}))
	all, err = readMutants("out")
	require.NoError(t, err)
	for _, m := range all {
		inLargest := strings.Contains(m.Before, "best") || strings.Contains(m.Before, "v != 9")
		same := m.Kind == "boundary" // v > best and v >= best find the same
		assert.Equal(t, inLargest && !same, m.Killed != "", m)
		assert.Equal(t, m.Killed == "", m.Lived, m)
	}
	again := slices.DeleteFunc(all, func(m Mutant) bool { return m.Killed != "" })
	require.NotEmpty(t, again)
	require.NoError(t, command(strings.Fields("build -n 0 -again out/mutants.json -out again -tests . .")))
	got, err := readMutants("again")
	require.NoError(t, err)
	for i := range again {
		again[i].ID, again[i].Lived = got[i].ID, false
	}
	assert.Equal(t, again, got)
}

// What a step does not reach is listed by none of its binaries.
func TestReached(t *testing.T) {
	list := filepath.Join(t.TempDir(), "reached")
	got, err := readReached(list)
	require.NoError(t, err)
	assert.Empty(t, got)
	require.NoError(t, os.WriteFile(list, []byte("3\n17\n"), 0o666))
	got, err = readReached(list)
	require.NoError(t, err)
	assert.Equal(t, map[int]bool{3: true, 17: true}, got)
	require.NoError(t, os.WriteFile(list, []byte("3\nx"), 0o666))
	_, err = readReached(list)
	assert.Error(t, err)
}

// Each kind of mistake, as the text that the compiler sees.
func TestEdits(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	text := "package tested\n\nfunc f(a, b int, ok bool, p *int) {\n\tif ok && p != nil {\n\t\ta = b - 1\n\t}\n\tfor a <= b+2 {\n\t\ta++\n\t}\n\t_ = make([]int, b-2, b+3)\n}\n"
	require.NoError(t, os.WriteFile("go.mod", []byte("module tested\n\ngo 1.26\n"), 0o666))
	require.NoError(t, os.WriteFile("tested.go", []byte(text), 0o666))
	sites, err := sitesOf(".")
	require.NoError(t, err)
	var got []string
	for _, s := range sites {
		edited := applied(text, s.edits(7))
		for line := range strings.Lines(edited) {
			if strings.Contains(line, "mutant") {
				got = append(got, strings.TrimSpace(line))
			}
		}
	}
	assert.ElementsMatch(t, []string{
		"if mutantNot(7, bool(ok && p != nil)) {",
		"if !mutantIs(7) { a = b - 1 }",
		"a = mutantOff[int](7, b - 1)",
		"for mutantBound(7, \"<=\", a , b+2) {",
		"for a <= mutantOff[int](7, b+2) {",
		"if !mutantIs(7) { a++ }",
		"if !mutantIs(7) { _ = make([]int, b-2, b+3) }",
		"_ = make([]int, mutantOff[int](7, b-2), b+3)",
	}, got)
}
