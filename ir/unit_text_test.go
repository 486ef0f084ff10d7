package ir_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestLineInfo: statements with a note count as lines of the source, and all others as the lines of the text that
// they are. Without directives the text is the same.
func TestLineInfo(t *testing.T) {
	source := "// softmax.fuse:1:1\nint a;\n    a = 1; // dir/softmax.fuse:7:13\n    b(); // a remark: 3\n" +
		"    c = 2; // my file.fuse:8:1\n    d = 3; // my file.fuse:9:1\n}\n"
	p := &ir.Program{Sources: []string{source}, Units: []ir.Unit{{Entry: "k", Defines: "#define VECTOR 4\n"}}}
	plain := p.Text(0)
	require.Equal(t, "#define VECTOR 4\n"+source, plain)
	text := p.WithLineInfo().Text(0)
	assert.Equal(t, plain, p.Text(0), "the program itself is as before")
	assert.Equal(t, plain, regexp.MustCompile(`(?m)^#line.*\n`).ReplaceAllString(text, ""))

	file, at := "k.cu", 0
	for i, line := range strings.Split(text, "\n") {
		if m := regexp.MustCompile(`^#line (\d+) "(.*)"$`).FindStringSubmatch(line); m != nil {
			file = m[2]
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			at = n - 1
			continue
		}
		at++
		if _, note, ok := strings.Cut(line, "; // "); ok && !strings.Contains(note, "remark") {
			assert.True(t, strings.HasPrefix(note, file+":"+strconv.Itoa(at)+":"), "%s:%d for %s", file, at, line)
			continue
		}
		assert.Equal(t, "k.cu", file, line)
		assert.Equal(t, i+1, at, line)
	}
}
