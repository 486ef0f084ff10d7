package main
type runCmd struct{}
func (*runCmd) Run(a *app) error { return nil }
type compileCmd struct{}
func (*compileCmd) Run(a *app) error { return nil }
