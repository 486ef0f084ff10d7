package main

type checkCmd struct {
	Files []string `arg:"" name:"file" help:"Programs to check."`
}

// Help is the long help text.
func (*checkCmd) Help() string {
	return `Prints every mistake with its place in the program, and exits with 1 where there is one.

Examples:

    fusec check examples/*.fuse`
}

// Run checks every file, whatever is wrong with the ones before it.
func (c *checkCmd) Run(a *app) error {
	failed := false
	for _, name := range c.Files {
		if _, err := a.parse(name); err != nil {
			a.report(err)
			failed = true
		}
	}
	if failed {
		return errFailed
	}
	return nil
}
