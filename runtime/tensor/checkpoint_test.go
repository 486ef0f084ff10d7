package tensor_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// stepped is a checkpoint of which every element is the step.
func stepped(t testing.TB, step int) tensor.Checkpoint {
	const n = 1 << 18
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(step)
	}
	w, err := tensor.FromSlice(data, 256, n/256)
	require.NoError(t, err)
	count, err := tensor.Scalar(ir.I32, float64(step))
	require.NoError(t, err)
	return tensor.Checkpoint{Arrays: map[string]*tensor.Tensor{"w": w, "step": count}, Metadata: map[string]string{"step": fmt.Sprint(step)}}
}

func TestCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	want := stepped(t, 7)
	require.NoError(t, tensor.WriteCheckpointFile(path, want))
	found, err := tensor.ReadCheckpointFile(path)
	require.NoError(t, err)
	assert.Equal(t, want, found)
	arrays, err := tensor.ReadSafetensorsFile(path, nil)
	require.NoError(t, err)
	assert.Equal(t, want.Arrays, arrays, "any reader of the format takes it")

	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 { // no bit that changes, and no end that is missing, changes what is read
		broken := bytes.Clone(whole)
		at := random.IntN(len(broken))
		if random.IntN(2) == 0 {
			at = random.IntN(400) // of the header
		}
		if random.IntN(4) == 0 {
			broken = broken[:at]
		} else {
			broken[at] ^= 1 << random.IntN(8)
		}
		require.NoError(t, os.WriteFile(path, broken, 0o600))
		if found, err := tensor.ReadCheckpointFile(path); err == nil { // as of a letter's case, that changes nothing
			assert.Equal(t, want, found, "byte %d", at)
		}
	}

	require.NoError(t, tensor.WriteSafetensorsFile(path, want.Arrays))
	_, err = tensor.ReadCheckpointFile(path)
	assert.ErrorContains(t, err, "no checkpoint")
	want.Metadata["fusec.sha256"] = "0"
	assert.ErrorContains(t, tensor.WriteCheckpointFile(path, want), "reserved")
}

// TestKilledWhileSaving: a process is killed while it saves again and again; what is found is always a
// whole checkpoint, and no older than the last one that was said to be saved.
func TestKilledWhileSaving(t *testing.T) {
	const folder = "FUSEC_TEST_SAVES"
	if dir := os.Getenv(folder); dir != "" {
		for step := 1; ; step++ {
			if err := tensor.WriteCheckpointFile(filepath.Join(dir, "a.safetensors"), stepped(t, step)); err != nil {
				t.Fatal(err)
			}
			fmt.Println("saved", step)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.safetensors")
	random := rand.New(rand.NewPCG(3, 4))
	inMidSave, whole := 0, 0
	for range 8 {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledWhileSaving$")
		child.Env = append(os.Environ(), folder+"="+dir)
		var said bytes.Buffer
		child.Stdout = &said
		require.NoError(t, child.Start())
		time.Sleep(time.Duration(50+random.IntN(200)) * time.Millisecond)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			if writing, err := filepath.Glob(filepath.Join(dir, ".*.tmp")); err != nil || len(writing) > 0 {
				break
			}
		}
		require.NoError(t, child.Process.Kill())
		_ = child.Wait() // that it was killed
		last := 0
		for line := range bytes.Lines(said.Bytes()) {
			fmt.Sscanf(string(line), "saved %d\n", &last)
		}
		left, err := filepath.Glob(filepath.Join(dir, ".*.tmp"))
		require.NoError(t, err)
		inMidSave += len(left)
		for _, f := range left {
			require.NoError(t, os.Remove(f))
		}
		found, err := tensor.ReadCheckpointFile(path)
		if errors.Is(err, fs.ErrNotExist) && last == 0 {
			continue // it never came to a first one
		}
		require.NoError(t, err)
		step := int(found.Arrays["step"].IntAt())
		assert.GreaterOrEqual(t, step, last)
		assert.Equal(t, stepped(t, step), found)
		require.NoError(t, os.Remove(path))
		whole++
	}
	t.Logf("%d of 8 were killed while a file was being written", inMidSave)
	assert.Positive(t, inMidSave)
	assert.Positive(t, whole)
}
