package hunt

import (
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// A libraryCall is a program of testdata/reference, which calls a function of the library with f64.
type libraryCall struct {
	Name, Program string
	Inputs        []struct{ Shape []int }
}

// libraryCalls are those of the library's functions; other files are about the language itself.
func libraryCalls(t *testing.T) (out []libraryCall) {
	files, err := filepath.Glob("../../testdata/reference/*.json")
	require.NoError(t, err)
	for _, file := range files {
		about := strings.TrimSuffix(filepath.Base(file), ".json")
		if about == "language" || about == "scalars" || about == "examples" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var calls []libraryCall
		require.NoError(t, json.Unmarshal(text, &calls))
		for _, c := range calls {
			c.Name = about + "/" + c.Name
			if strings.Contains(c.Program, "f64") {
				out = append(out, c)
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

var (
	wideFloats   = regexp.MustCompile(`\bf64\b`)
	declaredType = regexp.MustCompile(`(\w+) is declared \w+(?:\[.*\])?, but its value is (\w+)`)
)

// as is the call's program with another type in place of f64, whose results have what types the parser says.
func (c *libraryCall) as(dtype ir.DType) (text string, g *ir.Graph, err error) {
	text = wideFloats.ReplaceAllString(c.Program, dtype.String())
	for range 8 { // results
		var file *parser.File
		if file, err = parser.Parse("g.fuse", []byte(text), parser.Options{}); err == nil {
			g, err = file.Graph("")
		}
		if err == nil {
			return text, g, nil
		}
		told := declaredType.FindStringSubmatch(err.Error())
		if told == nil {
			return text, nil, err
		}
		text = regexp.MustCompile(`\b`+told[1]+`: \w+\b`).ReplaceAllString(text, told[1]+": "+told[2])
	}
	return text, nil, err
}

// asksForACast is how a function refuses a type: it says what it takes, or what is to be cast.
var asksForACast = regexp.MustCompile(`takes (floats|numbers|integers)|cast the tensor to a float type first|beside bool: write true or false|does not fit in u`)

// moves is how a call begins that moves elements and computes nothing, computed what else is in its program: it takes every type.
var (
	moves    = regexp.MustCompile(`^(shape|sort)/|^index/(embedding|gather|index_select)|^patches/unfold`)
	computed = regexp.MustCompile(`\.5| [-+*] (x|\d)|diff|median|quantile`)
)

// TestLibraryTakesItsTypes: a function of the library whose operands are declared with a type that is left open takes every float type,
// and gives the result that it declares; a mover takes every type. Others refuse integers and bools by saying what they take. What is
// taken runs on the CPU engine: one call in eight, with one type, or all of them with one type each where FUSEC_TEST_FULL is set.
func TestLibraryTakesItsTypes(t *testing.T) {
	t.Parallel()
	engines := openKept(t, "cpu")
	for _, c := range libraryCalls(t) {
		draw := crc32.ChecksumIEEE([]byte(c.Name + c.Program))
		for n, dtype := range ir.DTypes() {
			drawn := uint32(n) == draw%uint32(len(ir.DTypes()))
			if !drawn && dtype != ir.BF16 && dtype != ir.Bool && !inFull() {
				continue
			}
			text, g, err := c.as(dtype)
			if err != nil {
				assert.False(t, dtype.IsFloat() || c.moves(), "%s of %s: %v", c.Name, dtype, err)
				assert.Regexp(t, asksForACast, err.Error(), "%s of %s", c.Name, dtype)
			} else if drawn && (inFull() || draw/16%8 == 0) {
				c.compare(t, text, g, engines)
			}
		}
	}
}

func (c *libraryCall) moves() bool {
	return moves.MatchString(c.Name) && !computed.MatchString(c.Program)
}

// compare runs the call on engines with inputs that are drawn.
func (c *libraryCall) compare(t *testing.T, text string, g *ir.Graph, engines []Engine) {
	shapes := make([][]int, len(c.Inputs))
	for i, x := range c.Inputs {
		shapes[i] = x.Shape
	}
	sizes, err := ir.BindGraph(g, shapes)
	require.NoError(t, err, text)
	inputs, err := gen.Inputs(g, sizes, 1, false)
	require.NoError(t, err)
	r, err := NewReference(g, inputs)
	require.NoError(t, err, text)
	for _, e := range engines {
		assert.NoError(t, r.Run(t.Context(), text, e.Device), "%s: %s", c.Name, text)
	}
}
