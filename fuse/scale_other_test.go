//go:build !linux

package fuse

import (
	"testing"
	"time"
)

var started = time.Now()

func processorTime(*testing.T) time.Duration { return time.Since(started) }
