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

// buildVersion is the module's version, or the commit it was built from.
func buildVersion() string {
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
