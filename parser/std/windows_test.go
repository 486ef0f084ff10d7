package std

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/parser"
)

// windowMisuse is calls with windows that there are not, and what of their sizes the error says.
var windowMisuse = []struct{ call, want string }{
	{"conv2d(x, w, stride=0)", "windows need a stride of 1 or more: found stride = 0"},
	{"conv2d(x, w, stride=(1, 0))", "windows need a stride of 1 or more: found stride = 0"},
	{"conv2d(x, w, dilation=0)", "windows need a dilation of 1 or more: found dilation = 0"},
	{"conv2d(x, w, stride=(1, 2, 3))", "a list must have an integer for each axis: found items = 3, axes = 2"},
	{"conv2d(x, w, padding=(1, 2, 3))", "a list of paddings must have an item for each axis: found items = 3, axes = 2"},
	{"conv2d(x, depthwise)", "expected size 4 where axis 1 has 1: its axes are [O, C / groups, KH, KW]; groups=4 fits"},
	{"conv2d(x, pairs)", "expected size 4 where axis 1 has 2: its axes are [O, C / groups, KH, KW]; groups=2 fits"},
	{"conv2d(x, depthwise, groups=2)", "its axes are [O, C / groups, KH, KW]"},
	{"conv_transpose2d(x, w)", "expected size 4 where axis 0 has 2: its axes are [C, G, KH, KW]"},
	{`conv2d(x, w, padding="same", stride=2)`, `padding="same" needs a stride of 1`},
	{`conv2d(x, w, padding="full")`, `not the text "full"`},
	{"conv2d(x, w, padding=((1, 2, 3), 0))", "argument padding must be an integer, a list of integers or of pairs of them, or a text, not a list"},
	{`conv2d(x, w, padding=7, padding_mode="reflect")`, "a reflected padding is less than the axis: found n = 7"},
	{`conv2d(x, w, padding=1, padding_mode="mirror")`, `mode is "zeros", "reflect", "replicate" or "circular"`},
	{"conv_transpose2d(x, v, groups=3)", "conv_transpose2d needs input channels divisible by groups: found C = 4, groups = 3"},
	{"conv_transpose2d(x, v, stride=0)", "windows need a stride of 1 or more: found stride = 0"},
	{"max_pool2d(x, 2, stride=0)", "windows need a stride of 1 or more: found stride = 0"},
	{"adaptive_max_pool2d(x, 0)", "adaptive pooling needs a window at least: found output_size = 0"},
	{"fold2d(reshape(x, 1, 14, 14), (5, 5), 3)", "fold2d needs rows divisible by the elements of a window: found M = 14"},
	{`grid_sample(x, z, mode="cubic")`, `mode is "bilinear" or "nearest"`},
}

func TestWindowsThatAreNone(t *testing.T) {
	for _, c := range windowMisuse {
		t.Run(c.call, func(t *testing.T) {
			src := fmt.Sprintf(`graph g(x: f32[1, 4, 7, 7], w: f32[2, 4, 3, 3], v: f32[4, 2, 3, 3], z: f32[1, 2, 2, 2], depthwise: f32[4, 1, 3, 3], pairs: f32[4, 2, 3, 3]) -> (y: f32[]) {
				t = %s
				y = 0
			}`, c.call)
			_, err := parser.Parse("windows.fuse", []byte(src), parser.Options{})
			assert.ErrorContains(t, err, c.want)
		})
	}
}
