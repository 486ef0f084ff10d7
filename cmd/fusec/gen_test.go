package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const generatedMain = `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/fusec/fusec"
)

func main() {
	device, err := fusec.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	graphs, err := LoadKernels(context.Background(), device)
	if err != nil {
		log.Fatal(err)
	}
	y := make([]float32, 3)
	if err := graphs.Scale(context.Background(), ScaleSizes{3}, ScaleArgs{X: []float32{1, 2, 3}, Y: y}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y, graphs.Close())
}
`

// A program of its own, with a bundle embedded, is generated, compiled and run.
func TestGeneratedProgramWithABundleRuns(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command here")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	write("go.mod", strings.Replace(string(mod), "module github.com/fusec/fusec", "module example", 1)+
		"\nrequire github.com/fusec/fusec v0.0.0\n\nreplace github.com/fusec/fusec => "+root+"\n")
	write("go.sum", string(sum))
	write("scale.fuse", "graph scale(x: f32[N]) -> (y: f32[N]) {\n    y = x * 3\n}\n")
	write("main.go", generatedMain)

	var stdout, stderr strings.Builder
	fusec := func(args ...string) {
		t.Helper()
		env := func(name string) string { return map[string]string{"FUSEC_CACHE": t.TempDir()}[name] }
		code := run(args, &stdout, &stderr, env)
		if code == exitDevice && os.Getenv("CI") != "true" {
			t.Skip(stderr.String())
		}
		require.Zero(t, code, stderr.String())
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	fusec("key", in("app.key"))
	fusec("bundle", in("scale.fuse"), "-o", in("app.fbundle"), "--key", in("app.key"), "--arch", "sm_80")
	fusec("gen", in("scale.fuse"), "--package", "main", "--type", "Kernels", "--bundle", in("app.fbundle"),
		"--public-key", in("app.key.pub"))
	code, err := os.ReadFile(in("scale_fuse.go"))
	require.NoError(t, err)
	assert.Contains(t, string(code), "//go:embed app.fbundle\n")

	cmd := exec.Command("go", "run", "-mod=mod", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "[3 6 9] <nil>\n", string(out))
}
