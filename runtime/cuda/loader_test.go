//go:build linux && !nocuda

package cuda

// hasLoader: this build can open libraries, so that a missing one is worth a failure.
const hasLoader = true
