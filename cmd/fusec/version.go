package main

import (
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run prints the version of the module, the commit and the Go version.
func (*versionCmd) Run(a *app) error {
	a.ui.printf("fusec %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// released is the version of a binary that scripts/release has built, which sets it as it links.
var released string

// buildVersion is the version that was released or, of what go install and go build have made,
// the module's version, or the commit it was built from.
func buildVersion() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "commit " + s.Value
		}
	}
	return "devel"
}
