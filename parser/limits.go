package parser

// Limits bound what a source may cost, so that hostile text is answered quickly.
type Limits struct {
	Bytes  int // of one file
	Tokens int // of one file, blanks and comments included
	Depth  int // of nested brackets, reductions and blocks
	Terms  int // of operators in one statement
	Steps  int // statements executed, in loops and functions too, for one graph
	Errors int // reported in one run
}

// DefaultLimits is what Options with zero Limits means.
var DefaultLimits = Limits{Bytes: 16 << 20, Tokens: 500_000, Depth: 200, Terms: 10_000, Steps: 50_000, Errors: 20}
