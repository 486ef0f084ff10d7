//go:build !linux || nocuda

package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWithoutLoaderNothingIsFound(t *testing.T) {
	_, err := Open()
	assert.ErrorIs(t, err, ErrNoDriver)
	assert.ErrorContains(t, err, "nocuda")
	_, err = OpenPath("libcuda.so.1")
	assert.ErrorIs(t, err, ErrNoDriver)
	_, err = FindNVRTC(FindOptions{})
	assert.ErrorIs(t, err, ErrNoNVRTC)
	assert.ErrorContains(t, err, "nocuda")
}
