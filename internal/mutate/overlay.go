package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Each mutated package gets helpers, which ask the switches: a package that the overlay adds to the module, so that a
// process can switch from mutant to mutant. What judges that way are tests that the overlay adds to packages.
var (
	//go:embed switches.go.txt
	switches string
	//go:embed helpers.go.txt
	helpers string
	//go:embed judge.go.txt
	judging string
	//go:embed texts.go.txt
	texts string
	//go:embed engine.go.txt
	engine string
	//go:embed boundaries.go.txt
	boundaries string
)

// writeOverlay writes the edited files to a folder, and beside them the list by which the go command
// takes them in place of the files of the tree. They end in .txt, so that a folder inside the tree is no
// package. It returns the path of that list.
func writeOverlay(dir string, m module, edits map[string][]edit) (string, error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	replace := map[string]string{}
	put := func(path, text string) error {
		to := filepath.Join(dir, fmt.Sprintf("%d.txt", len(replace)))
		replace[path] = to
		return os.WriteFile(to, []byte(text), 0o666)
	}
	for path, es := range edits {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		if err := put(path, applied(string(text), es)); err != nil {
			return "", err
		}
		helper := filepath.Join(filepath.Dir(path), "mutant_switches.go")
		if _, ok := replace[helper]; ok {
			continue
		}
		if err := put(helper, fmt.Sprintf("package %s\n\nimport %q\n\n%s", f.Name.Name, m.path+"/internal/mutants", helpers)); err != nil {
			return "", err
		}
	}
	if len(edits) == 0 {
		return "", fmt.Errorf("there is no mutant to make")
	}
	if err := put(filepath.Join(m.dir, "internal", "mutants", "switches.go"), switches); err != nil {
		return "", err
	}
	if err := put(filepath.Join(m.dir, "internal", "mutants", "judge.go"), judging); err != nil {
		return "", err
	}
	for folder, text := range map[string]string{"conformance": texts, "fuse": boundaries, "runtime/cpu": engine} {
		if _, err := os.Stat(filepath.Join(m.dir, folder)); err != nil {
			continue
		}
		if err := put(filepath.Join(m.dir, folder, "mutants_test.go"), text); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, list, 0o666)
}

// applied is a text with edits, none of which meets another.
func applied(text string, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.at])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// binary is the file name of a package's tests.
func binary(pkg string) string {
	pkg = strings.Trim(strings.TrimPrefix(pkg, "."), "/")
	return strings.ReplaceAll(cmp.Or(pkg, "root"), "/", "-") + ".test"
}

func buildTest(pkg, overlay, to string) error {
	c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-ldflags=-s -w", "-o", to, pkg)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, out)
	}
	return nil
}

func writeMutants(dir string, all []Mutant) error {
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "mutants.json"), text, 0o666)
}

// openFolder is a folder with mutants by its absolute name, as the tests of packages need it, and these.
func openFolder(dir string) (abs string, all []Mutant, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return "", nil, err
	}
	all, err = readMutants(abs)
	return abs, all, err
}

func readMutants(dir string) ([]Mutant, error) { return readList(filepath.Join(dir, "mutants.json")) }

func readList(file string) (all []Mutant, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}
