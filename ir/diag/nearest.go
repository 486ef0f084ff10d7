package diag

import (
	"fmt"
	"slices"
	"strings"
)

// mostChoices is how many names Choices lists.
const mostChoices = 12

// Choices is the end of a message about an unknown name: ": did you mean first? It has first,
// second", or without a similar name ": it has first, second". It is empty if there are no
// names.
func Choices(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	if near := Nearest(name, known); near != "" {
		if len(known) == 1 {
			return ": did you mean " + near + "?"
		}
		return ": did you mean " + near + "? It has " + Names(known)
	}
	return ": it has " + Names(known)
}

// Names lists the known names, at most a dozen.
func Names(known []string) string {
	text := strings.Join(known[:min(len(known), mostChoices)], ", ")
	if more := len(known) - mostChoices; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Nearest returns the candidate that a typing mistake most likely meant, or "".
func Nearest(name string, candidates []string) string {
	candidates = slices.Sorted(slices.Values(candidates))
	best, bestDist := "", min(1+len(name)/6, len(name)/2)
	for _, c := range candidates {
		d := editDistance(name, c, bestDist)
		closer := best == "" || d < bestDist || abs(len(c)-len(name)) < abs(len(best)-len(name))
		if d <= bestDist && closer && c != name {
			best, bestDist = c, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, substitutions and swaps of
// neighbours; it may return any number above limit when there are more.
func editDistance(a, b string, limit int) int {
	const longest = 64
	if abs(len(a)-len(b)) > limit || len(a) > longest || len(b) > longest {
		return limit + 1
	}
	var two, prev, cur [longest + 1]int
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], two[j-2]+1)
			}
		}
		two, prev = prev, cur
	}
	return prev[len(b)]
}

func abs(a int) int { return max(a, -a) }
