package ir

import "fmt"

// A MemoryError says that an allocation was refused, because there was less memory than it
// needs. Nothing was allocated, and nothing else has changed.
type MemoryError struct {
	What  string // what was to be allocated, such as "tensor f32[4, 5]"
	Bytes int64  // that it needs
	Free  int64  // bytes that were free when it was refused
	Total int64  // all bytes of that memory
	Place string // whose memory it is, such as "this machine"
	Err   error  // from the driver of a device; nil if the driver was not asked
}

func (e *MemoryError) Error() string {
	text := fmt.Sprintf("%s takes %s: %s has %s of memory, %s of it free", e.What, byteName(e.Bytes), e.Place,
		byteName(e.Total), byteName(e.Free))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the driver's error.
func (e *MemoryError) Unwrap() error { return e.Err }

// NeverFits reports whether the memory would be too small even if all of it were free.
func (e *MemoryError) NeverFits() bool { return e.Bytes > e.Total }

// byteName spells a number of bytes for people.
func byteName(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	size, prefixes := float64(n)/unit, "KMGTPE"
	for size >= unit {
		size, prefixes = size/unit, prefixes[1:]
	}
	return fmt.Sprintf("%.1f %ciB", size, prefixes[0])
}
