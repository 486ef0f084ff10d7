package main

import (
	"fmt"
	"io"
	"os"

	"github.com/fusec/fusec/runtime/sign"
)

type keyCmd struct {
	File string `arg:"" name:"file" help:"File for the secret key; the public one goes to FILE.pub."`
}

// Help is the long help text.
func (*keyCmd) Help() string {
	return `Whoever has the secret key can make kernels that others run: keep it where bundles are
built. Applications hold the public key. No file is written over.

Examples:

    fusec key app.key
    fusec bundle model.fuse -o app.fbundle --arch sm_80,sm_90a --key app.key`
}

// Run makes the pair.
func (c *keyCmd) Run(a *app) error {
	key, err := sign.NewKey()
	if err != nil {
		return err
	}
	if err := writeNew(c.File, sign.FormatSecret(key), 0o600); err != nil {
		return err
	}
	public := sign.FormatPublic(sign.Public(key))
	if err := writeNew(c.File+".pub", public, 0o644); err != nil {
		return err
	}
	a.ui.printf("%s is secret; %s.pub holds %s", c.File, c.File, public)
	return nil
}

// writeNew writes a file that must not be there yet.
func writeNew(path, text string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if os.IsExist(err) {
		return fmt.Errorf("%s exists: choose another name, or remove it first", path)
	}
	if err != nil {
		return plainPathError(err)
	}
	_, err = io.WriteString(f, text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
