package cache

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests below run this test binary again as other processes that share a cache.
const roleEnv, dirEnv = "FUSEC_CACHE_TEST_ROLE", "FUSEC_CACHE_TEST_DIR"

// scale is how often to do something: what a release is tested with where
// FUSEC_TEST_FULL is set, else fewer.
func scale(quick, full int) int {
	if os.Getenv("FUSEC_TEST_FULL") != "" {
		return full
	}
	return quick
}

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "race":
		raceRole(os.Getenv(dirEnv))
	case "user":
		userRole(os.Getenv(dirEnv))
	case "write":
		writeRole(os.Getenv(dirEnv))
	default:
		os.Exit(m.Run())
	}
}

const raceKeys = 5

func roleCache(dir string) *Cache {
	return Open(Options{Dir: dir, OnWarning: func(err error) { fmt.Println("warning", err) }})
}

// raceRole asks for every key, in an order of its own, when its input is closed.
func raceRole(dir string) {
	c := roleCache(dir)
	bufio.NewReader(os.Stdin).ReadString('\n')
	for _, n := range rand.Perm(raceKeys) {
		e, _, err := c.GetOrCreate(context.Background(), testKey(int64(n)), func(context.Context) (Entry, error) {
			fmt.Println("created", n)
			time.Sleep(20 * time.Millisecond)
			return testEntry(int64(n)), nil
		})
		if err != nil {
			fmt.Println("error", err)
		}
		fmt.Printf("result %d %x\n", n, e.Section(Cubin))
	}
}

// userRole uses a cache where and as its environment says, which is not this user's.
func userRole(dir string) {
	o := Options{Dir: dir, OnWarning: func(err error) { fmt.Println("warning:", err) }}
	c := Open(o)
	for range 2 {
		_, outcome, err := c.GetOrCreate(context.Background(), testKey(1), func(context.Context) (Entry, error) {
			return testEntry(1), nil
		})
		fmt.Println(outcome, err)
	}
}

// writeRole writes entries until it is killed.
func writeRole(dir string) {
	c := roleCache(dir)
	fmt.Println("ready")
	for n := int64(0); ; n = (n + 1) % 50 {
		c.Put(testKey(n), bulky(n))
	}
}

func bulky(n int64) Entry {
	e := testEntry(n)
	e.Sections = append(e.Sections, Section{Source, make([]byte, 200_000)})
	return e
}

func role(t *testing.T, name, dir string) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleEnv+"="+name, dirEnv+"="+dir)
	return cmd
}

func TestManyProcessesCreateOnce(t *testing.T) {
	dir := private(t)
	processes := scale(20, 100)
	outputs := make([]strings.Builder, processes)
	var running sync.WaitGroup
	var gates []func() error
	for i := range processes {
		cmd := role(t, "race", dir)
		cmd.Stdout, cmd.Stderr = &outputs[i], &outputs[i]
		gate, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		gates = append(gates, gate.Close)
		running.Go(func() { assert.NoError(t, cmd.Wait()) })
	}
	for _, open := range gates {
		open()
	}
	running.Wait()
	lines := map[string]int{}
	for i := range outputs {
		for line := range strings.Lines(outputs[i].String()) {
			lines[strings.TrimSpace(line)]++
		}
	}
	want := map[string]int{}
	for n := range raceKeys {
		want[fmt.Sprint("created ", n)] = 1
		want[fmt.Sprintf("result %d %x", n, testEntry(int64(n)).Section(Cubin))] = processes
	}
	assert.Equal(t, want, lines)
	t.Logf("%d processes, %d keys: each created once, no error, equal results", processes, raceKeys)
}

// Processes are killed while they write: what stays is whole entries, and temporary
// files for the sweep to take.
func TestKillInMidWrite(t *testing.T) {
	kills := scale(100, 1000)
	dir := private(t)
	for range kills {
		killOne(t, dir)
	}
	c := open(t, dir)
	checked, bad, err := c.Verify()
	require.NoError(t, err)
	assert.NotZero(t, checked)
	assert.Empty(t, bad)
	for n := range int64(50) {
		if e, o := c.Get(testKey(n)); o == Hit {
			assert.Equal(t, bulky(n).Sections, e.Sections)
		}
	}
	s, err := c.Stats()
	require.NoError(t, err)
	assert.NotZero(t, s.Temporary, "some were killed in mid-write")
	t.Logf("%d kills: %d entries, %d bad, %d half-written files", kills, checked, len(bad), s.Temporary)

	later := Open(Options{Dir: dir, Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	_, err = later.Prune(DefaultMaxBytes)
	require.NoError(t, err)
	s, err = later.Stats()
	require.NoError(t, err)
	assert.Zero(t, s.Temporary)
	locks, err := os.ReadDir(filepath.Join(dir, lockDir))
	require.NoError(t, err)
	assert.Empty(t, locks)
}

func killOne(t *testing.T, dir string) {
	cmd := role(t, "write", dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	time.Sleep(time.Duration(rand.IntN(10_000)) * time.Microsecond)
	require.NoError(t, cmd.Process.Kill())
	cmd.Wait() // says "killed"
}
