// Package editors tests what editors are given.
package editors

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// rule is a pattern of a TextMate grammar.
type rule struct {
	Name     string
	Match    string
	Captures map[string]struct{ Name string }
	re       *regexp.Regexp
}

func readGrammar(t *testing.T) []rule {
	raw, err := os.ReadFile("vscode/syntaxes/fuse.tmLanguage.json")
	require.NoError(t, err)
	var grammar struct {
		ScopeName string
		Patterns  []rule
	}
	require.NoError(t, json.Unmarshal(raw, &grammar))
	require.Equal(t, "source.fuse", grammar.ScopeName)
	for i := range grammar.Patterns {
		r := &grammar.Patterns[i]
		r.re, err = regexp.Compile(r.Match)
		require.NoError(t, err)
	}
	return grammar.Patterns
}

// scopes gives each byte of a line the name of what it is, as an editor does: of all
// patterns the one that matches first, of those the one listed first.
func scopes(rules []rule, line string) []string {
	out, all := make([]string, len(line)), make([][][]int, len(rules))
	for i := range rules {
		all[i] = rules[i].re.FindAllStringSubmatchIndex(line, -1)
	}
	for pos := 0; pos < len(line); {
		var best []int
		var chosen *rule
		for i := range rules {
			m := matchFrom(rules[i].re, all[i], line, pos)
			if m != nil && (best == nil || m[0] < best[0]) {
				best, chosen = m, &rules[i]
			}
		}
		if chosen == nil || best[1] == best[0] {
			break
		}
		paint(out, best[0], best[1], chosen.Name)
		for group, capture := range chosen.Captures {
			n, _ := strconv.Atoi(group)
			paint(out, best[2*n], best[2*n+1], capture.Name)
		}
		pos = best[1]
	}
	return out
}

func paint(out []string, from, to int, name string) {
	for i := from; i < to; i++ {
		out[i] = name
	}
}

// matchFrom finds the first match at pos or behind it, of all in the line where it can; what stands before pos counts for \b
// and ^.
func matchFrom(re *regexp.Regexp, all [][]int, line string, pos int) []int {
	for _, m := range all {
		if m[0] >= pos {
			return m
		}
	}
	if m := re.FindStringSubmatchIndex(line[pos:]); m != nil && !strings.HasPrefix(re.String(), "^") {
		for i := range m {
			if m[i] >= 0 {
				m[i] += pos
			}
		}
		return m
	}
	return nil
}

// want lists what a token may be coloured as.
func want(t parser.Token) []string {
	switch t.Kind {
	case parser.KeywordToken:
		return []string{"keyword.declaration.fuse", "keyword.control.fuse"}
	case parser.ReductionToken:
		return []string{"support.function.reduction.fuse"}
	case parser.NumberToken:
		return []string{"constant.numeric.fuse"}
	case parser.TextToken:
		return []string{"string.quoted.double.fuse"}
	case parser.OperatorToken:
		return []string{"keyword.operator.fuse", "keyword.operator.annotation.fuse"}
	case parser.PunctuationToken, parser.LineEndToken:
		return []string{"punctuation.fuse", "punctuation.bracket.fuse", "punctuation.range.fuse"}
	case parser.CommentToken:
		return []string{"comment.line.number-sign.fuse"}
	}
	if _, ok := ir.DTypeNamed(t.Text); ok {
		return []string{"support.type.fuse"}
	}
	return []string{"variable.other.fuse", "variable.language.contextual.fuse", "entity.name.function.fuse",
		"entity.name.function.call.fuse", "constant.language.fuse", "support.type.fuse", "storage.modifier.fuse"}
}

// TestGrammarFollowsLexer: the colours of every word of every program of the tree are
// those of what the lexer says it is, and blanks have none.
func TestGrammarFollowsLexer(t *testing.T) {
	rules := readGrammar(t)
	checked := 0
	check := func(name, text string) {
		lines := strings.Split(text, "\n")
		painted := make([][]string, len(lines))
		for i, line := range lines {
			painted[i] = scopes(rules, line)
		}
		for _, tok := range parser.Tokens(name, []byte(text)) {
			if tok.Text == "\n" {
				continue
			}
			line, start := lines[tok.Pos.Line-1], tok.Pos.Offset-offsetOf(lines, tok.Pos.Line-1)
			wanted := want(tok)
			for i := start; i < start+len(tok.Text); i++ {
				if got := painted[tok.Pos.Line-1][i]; !slices.Contains(wanted, got) {
					t.Fatalf("%s: %q in %q is %s, expected one of %v", tok.Pos, tok.Text, line, got, wanted)
				}
			}
			checked++
		}
	}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".fuse" {
			return err
		}
		text, err := os.ReadFile(path)
		check(path, string(text))
		return err
	}))
	assert.Greater(t, checked, 10_000)
	var all strings.Builder
	for _, m := range ir.Monoids() {
		all.WriteString("y = " + m.String() + "[k] x[k] + " + m.String() + "(x)\n")
	}
	for _, word := range parser.Keywords() {
		all.WriteString(word + "\n")
	}
	for _, d := range ir.DTypes() {
		all.WriteString("x: " + d.String() + "[N] = " + d.String() + "(1)\n")
	}
	all.WriteString(`a = 0x1F + 0b10_1 + 1_000 + 1.5e-5 + .5 + 2. + 1e5 + x[0..8] + "a \" # b" # "c"` + "\nfor k in 0..n { y = x[..., ::2] ; z = !a && b || -c ** 2 }\n")
	check("words", all.String())
}

func offsetOf(lines []string, n int) int {
	offset := 0
	for _, l := range lines[:n] {
		offset += len(l) + 1
	}
	return offset
}
