//go:build !race

package runtime

// slowness is how much more time the race detector is given.
const slowness = 1
