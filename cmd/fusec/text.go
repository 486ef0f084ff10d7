package main

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/fusec/fusec/ir"
)

// byteText is a number of bytes in the largest binary unit that keeps it above 1.
func byteText(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, at := float64(n)/1024, 0
	for v >= 1024 && at < len(units)-1 {
		v, at = v/1024, at+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[at])
}

// milliseconds keeps four digits below a millisecond, where kernels live.
func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 1 {
		return fmt.Sprintf("%.4f", ms)
	}
	return fmt.Sprintf("%.3f", ms)
}

// roughTime is a time of which the first digit matters.
func roughTime(seconds float64) string {
	switch {
	case seconds < 1:
		return "a second"
	case seconds < 100:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 100*60:
		return fmt.Sprintf("%.0f minutes", seconds/60)
	}
	return fmt.Sprintf("%.0f hours", seconds/3600)
}

// count writes a number of things: 1 kernel, 2 kernels.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %s", n, plural(thing))
}

// plural is the word for several of a thing.
func plural(thing string) string {
	if strings.HasSuffix(thing, "s") {
		return thing + "es"
	}
	return thing + "s"
}

func sizesText(sizes map[string]int64) string {
	var parts []string
	for _, name := range sortedNames(sizes) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, sizes[name]))
	}
	return strings.Join(parts, " ")
}

func sortedNames[T any](m map[string]T) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// deviceNames lists the GPUs whose figures are known.
func deviceNames() string {
	var names []string
	for _, d := range ir.Devices() {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}
