package ir

// Facts is what is known about symbols. The zero value says only that sizes
// are not negative.
type Facts struct {
	Divisible map[string]int64 // the symbol is a multiple of this
	Positive  bool             // every symbol is at least 1: so it is inside a loop that runs
}
