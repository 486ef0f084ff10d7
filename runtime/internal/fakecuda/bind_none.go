//go:build !linux || nocuda

package fakecuda

import "errors"

const noLoader = "this build cannot open libraries, a fake driver neither"

func bind(string, map[string]any) error { return errors.New(noLoader) }

// Execute is never called: there is no Driver.
func (d *Driver) Execute(Executor) { panic("BUG: " + noLoader) }
