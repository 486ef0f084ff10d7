package parser

// Limits bound what a source may cost, so that hostile text is answered quickly.
type Limits struct {
	Bytes    int // of one file
	Tokens   int // of one file, blanks and comments included
	Depth    int // of nested brackets, reductions and blocks
	Terms    int // of operators in one statement
	Steps    int // statements executed, in loops and functions too, for one graph
	Operands int // evaluated in those, at up to 1 KB of memory each
	Errors   int // reported in one run
}

// DefaultLimits is what Options with zero Limits means. Operands are half of Tokens: text
// without loops and functions has an operator or a bracket for each operand.
var DefaultLimits = Limits{Bytes: 16 << 20, Tokens: 500_000, Depth: 200, Terms: 10_000, Steps: 50_000,
	Operands: 250_000, Errors: 20}
