package main

import (
	"fmt"
	"time"

	"github.com/fusec/fusec/runtime/cache"
)

type cacheCmd struct {
	Ls     cacheLsCmd     `cmd:"" help:"List the entries, the most recently used first."`
	Clear  cacheClearCmd  `cmd:"" help:"Remove every entry."`
	Stats  cacheStatsCmd  `cmd:"" help:"Count entries and bytes."`
	Why    cacheWhyCmd    `cmd:"" help:"Say what of a program is stored, and why the rest is not."`
	Verify cacheVerifyCmd `cmd:"" help:"Read every entry in full; exits with 1 where one is damaged."`
}

// Help is the long help text.
func (*cacheCmd) Help() string {
	return `FUSEC_CACHE places the cache: "off", or folders as in PATH, of which the first is
written to and the others are only read.

Examples:

    fusec cache ls
    FUSEC_CACHE=/tmp/kernels fusec cache stats`
}

// openCache opens the user's cache; what is wrong with it is a warning.
func (a *app) openCache() *cache.Cache {
	warn := func(err error) { a.ui.notef("cache: %s", err) }
	return cache.Open(cache.Options{Getenv: a.getenv, OnWarning: warn})
}

type cacheLsCmd struct{}

// Run lists the entries.
func (*cacheLsCmd) Run(a *app) error {
	entries, err := a.openCache().List()
	if err != nil {
		return err
	}
	var rows [][]string
	for _, e := range entries {
		rows = append(rows, []string{entryName(e), byteText(e.Size), stamp(e.Created), stamp(e.Used), remark(e)})
	}
	a.ui.table([]column{col("entry"), number("size"), col("created"), col("used"), col("")}, rows)
	return nil
}

// entryName is the kind and the first digits of the sum: enough to tell entries apart.
func entryName(e cache.Info) string {
	if e.Err != nil {
		return e.Path
	}
	const digits = 16
	return fmt.Sprintf("%s/%s", e.Key.Kind, e.Key.Sum.String()[:digits])
}

func remark(e cache.Info) string {
	switch {
	case e.Err != nil:
		return "unusable: " + e.Err.Error()
	case e.ReadOnly:
		return "read-only"
	}
	return ""
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04")
}

type cacheClearCmd struct{}

// Run empties the cache.
func (*cacheClearCmd) Run(a *app) error {
	c := a.openCache()
	n, err := c.Clear()
	if err != nil {
		return err
	}
	a.ui.printf("removed %d entries from %s\n", n, placeText(c))
	return nil
}

func placeText(c *cache.Cache) string {
	if c.Dir() == "" {
		return "no folder: the cache is off or cannot be written"
	}
	return c.Dir()
}

type cacheStatsCmd struct{}

// Run counts what is there.
func (*cacheStatsCmd) Run(a *app) error {
	c := a.openCache()
	s, err := c.Stats()
	if err != nil {
		return err
	}
	rows := [][]string{{"folder", placeText(c)}}
	for _, k := range cache.Kinds() {
		rows = append(rows, []string{string(k) + " entries", fmt.Sprint(s.Entries[k])})
	}
	rows = append(rows, []string{"size", byteText(s.Bytes) + " of " + byteText(s.MaxBytes)},
		[]string{"quarantined", fmt.Sprint(s.Quarantined)}, []string{"temporary files", fmt.Sprint(s.Temporary)},
		[]string{"last sweep", stamp(s.Swept)})
	a.ui.pairs(rows)
	return nil
}

type cacheVerifyCmd struct{}

// Run reads every entry.
func (*cacheVerifyCmd) Run(a *app) error {
	checked, bad, err := a.openCache().Verify()
	if err != nil {
		return err
	}
	for _, e := range bad {
		a.ui.errorf("%s: %s", e.Path, e.Err)
	}
	a.ui.printf("checked %d entries, %d damaged\n", checked, len(bad))
	if len(bad) > 0 {
		return errFailed
	}
	return nil
}
