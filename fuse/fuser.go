package fuse

import "github.com/fusec/fusec/ir"

// fuser grows regions by merging them until no merge saves time.
type fuser struct {
	*flow
	choices []Choice
	home    map[*ir.Value]*region
	next    int
	marked  int // how many searches have marked regions, see merge_convex.go
	refused edgeRefusals
}
