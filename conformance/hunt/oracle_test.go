package hunt

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
)

var (
	oraclePrograms = flag.Int("oracle.count", 300, "programs on which NumPy judges the interpreter")
	oracleSeed     = flag.Uint64("oracle.seed", 77, "the first seed")
)

const oracleScript = "../../testdata/reference/oracle.py"

// numpy is a python that has NumPy.
func numpy(t *testing.T) string {
	t.Helper()
	for _, python := range []string{os.Getenv("FUSEC_PYTHON"), "python3", "/usr/bin/python3"} {
		if python != "" && exec.Command(python, "-c", "import numpy").Run() == nil {
			return python
		}
	}
	t.Skip("no python with NumPy here (FUSEC_PYTHON names one): the interpreter is its own judge")
	return ""
}

// TestInterpreterAgreesWithNumPy: the interpreter, which judges the engines, is judged by a
// reading of the language that shares no code with it.
func TestInterpreterAgreesWithNumPy(t *testing.T) {
	oracle, err := StartOracle(numpy(t), oracleScript)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, oracle.Close()) })
	known := 0
	for n := range *oraclePrograms {
		p := gen.Draw(*oracleSeed + uint64(n))
		err := oracle.Judge(p)
		switch {
		case errors.Is(err, ErrUnknown):
		case err != nil:
			t.Errorf("seed %d: %v\n%s", p.Seed, err, Found(p, "the interpreter"))
		default:
			known++
		}
	}
	t.Logf("%d of %d programs judged", known, *oraclePrograms)
	require.Greater(t, known, *oraclePrograms/4)
}
