package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
)

// writeRepro makes the folder: the program and its imports below files, copies of input files
// below inputs, and beside them what was found.
func (a *app) writeRepro(dir string, c runCmd, found outcome) error {
	r := reproFile{Format: reproFormat, Version: buildVersion(), Machine: machineText(), Graph: c.Graph, Sizes: c.Size,
		Device: c.Device, Seed: c.Seed, Scale: c.Scale, Found: found}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return plainPathError(err)
	}
	var err error
	if r.Program, err = a.copySources(filepath.Join(dir, "files"), c.File); err != nil {
		return err
	}
	if r.In, err = copyInputs(dir, c.In); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	files := map[string]string{reproName: string(text) + "\n", "output.txt": found.Output, "README.md": reproReadme(r)}
	if original, is := a.original(c.File); is {
		files["original.fuse"] = original
	}
	a.addPlan(files, c)
	for _, name := range sortedNames(files) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(files[name]), 0o666); err != nil {
			return plainPathError(err)
		}
	}
	return nil
}

func reproReadme(r reproFile) string {
	return fmt.Sprintf("A run of fusec %s: %s. `fusec repro .` runs it again and says whether it still fails.\n\n"+
		"The program is in files, inputs that came from files in inputs; output.txt is what was printed, plan.txt and\n"+
		"kernels.cu what was made of the program, where it got that far, and original.fuse the program where it was\n"+
		"made shorter.\n", r.Version, r.Found.Kind)
}

// machineText is what the machine has.
func machineText() []string {
	out := []string{fmt.Sprintf("%s %s/%s, %d cores", goruntime.Version(), goruntime.GOOS, goruntime.GOARCH, goruntime.NumCPU())}
	for _, f := range append(driverFindings(), nvrtcFinding(false)) {
		out = append(out, f.part+": "+strings.Join(f.text, "; "))
	}
	return out
}

// copySources writes the program and what it imports below a folder, as they lie to each
// other, and returns the program's name there.
func (a *app) copySources(dir, program string) (string, error) {
	absolute, common := map[string]string{}, ""
	for name := range a.files.texts {
		at, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		absolute[name] = at
		if folder := filepath.Dir(at); common == "" {
			common = folder
		} else {
			common = commonFolder(common, folder)
		}
	}
	for name, at := range absolute {
		below, err := filepath.Rel(common, at)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, below)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return "", plainPathError(err)
		}
		if err := os.WriteFile(to, []byte(a.files.texts[name]), 0o666); err != nil {
			return "", plainPathError(err)
		}
	}
	below, err := filepath.Rel(common, absolute[program])
	return filepath.ToSlash(below), err
}

// commonFolder is the last folder that both are in.
func commonFolder(a, b string) string {
	for a != b && !strings.HasPrefix(b, strings.TrimSuffix(a, string(filepath.Separator))+string(filepath.Separator)) {
		a = filepath.Dir(a)
	}
	return a
}

// copyInputs copies the files of --in below the folder and returns the flags that read them
// there, relative to it.
func copyInputs(dir string, given []string) ([]string, error) {
	var out []string
	for i, text := range given {
		name, rest, named := strings.Cut(text, "=")
		if !named {
			rest = text
		}
		p := placeOf(name, rest)
		if p.number {
			out = append(out, text)
			continue
		}
		below := filepath.Join("inputs", fmt.Sprintf("%d-%s", i+1, filepath.Base(p.path)))
		if err := copyFile(p.path, filepath.Join(dir, below)); err != nil {
			return nil, fmt.Errorf("--in %s: %w", text, plainPathError(err))
		}
		flag := filepath.ToSlash(below)
		if p.array != "" && strings.HasSuffix(rest, ":"+p.array) {
			flag += ":" + p.array
		}
		if named {
			flag = name + "=" + flag
		}
		out = append(out, flag)
	}
	return out, nil
}

// inputsAt are flags of copyInputs with the folder before the files.
func inputsAt(dir string, flags []string) []string {
	var out []string
	for _, text := range flags {
		name, rest, named := strings.Cut(text, "=")
		switch {
		case !named:
			out = append(out, filepath.Join(dir, filepath.FromSlash(text)))
		case placeOf(name, rest).number:
			out = append(out, text)
		default:
			out = append(out, name+"="+filepath.Join(dir, filepath.FromSlash(rest)))
		}
	}
	return out
}

func copyFile(from, to string) (err error) {
	in, _, err := regular.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// addPlan adds the plan and the CUDA text at the sizes, where the compiler gets that far.
func (a *app) addPlan(files map[string]string, c runCmd) {
	source, err := a.files.source(c.File)
	if err != nil {
		return
	}
	program, err := fusec.CompileSource(source, fusec.Options{Graph: c.Graph})
	if err != nil {
		return
	}
	files["plan.txt"] = ir.PrintPlan(program.Plan())
	cuda, err := program.CUDA()
	if err != nil {
		return
	}
	units, err := (&compileCmd{Size: c.Size}).units(program.Graph(), cuda)
	if err != nil {
		return
	}
	var text strings.Builder
	for _, u := range units {
		text.WriteString(cuda.Text(u))
	}
	files["kernels.cu"] = text.String()
}
