package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cache/httpstore"
)

type cacheCmd struct {
	Ls     cacheLsCmd     `cmd:"" help:"List the entries, the most recently used first."`
	Clear  cacheClearCmd  `cmd:"" help:"Remove every entry."`
	Stats  cacheStatsCmd  `cmd:"" help:"Count entries and bytes."`
	Why    cacheWhyCmd    `cmd:"" help:"Say what of a program is stored, and why the rest is not."`
	Prune  cachePruneCmd  `cmd:"" help:"Remove the least recently used entries, down to a size."`
	Verify cacheVerifyCmd `cmd:"" help:"Read every entry in full; exits with 1 where one is damaged."`
}

// Help is the long help text.
func (*cacheCmd) Help() string {
	return `FUSEC_CACHE places the cache: "off", or folders as in PATH, of which the first is
written to and the others are only read. FUSEC_SHARED is the address of a store that many
machines share (http://cache.example:8080), and FUSEC_SHARED_KEY a key file: with the secret
key kernels are also sent there, with the public key they are only taken.

Examples:

    fusec cache ls
    FUSEC_CACHE=/tmp/kernels fusec cache stats`
}

// openCache opens the user's cache, with the shared store behind it; what is wrong
// with them is a warning.
func (a *app) openCache() *cache.Cache {
	warn := func(err error) { a.ui.notef("cache: %s", err) }
	shared, err := httpstore.FromEnv(a.getenv)
	if err != nil {
		warn(err)
	}
	c := cache.Open(cache.Options{Getenv: a.getenv, OnWarning: warn, Shared: shared})
	a.caches = append(a.caches, c)
	return c
}

// localCache opens the folders of the user's cache alone.
func (a *app) localCache() *cache.Cache {
	return cache.Open(cache.Options{Getenv: a.getenv, OnWarning: func(err error) { a.ui.notef("cache: %s", err) }})
}

// flushCaches lets what was compiled reach the shared store before the process ends,
// if that does not take long.
func (a *app) flushCaches() {
	const limit = 3 * time.Second
	ctx, cancel := context.WithTimeout(a.ctx, limit)
	defer cancel()
	for _, c := range a.caches {
		if c.Flush(ctx) != nil {
			a.ui.notef("cache: not everything was sent to the shared store within %v", limit)
			return
		}
	}
}

type cacheLsCmd struct{}

// Run lists the entries.
func (*cacheLsCmd) Run(a *app) error {
	entries, err := a.localCache().List()
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
	c := a.localCache()
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

type cachePruneCmd struct {
	To int64 `default:"-1" placeholder:"MiB" help:"Size to keep to, in MiB; by default that of the cache."`
}

// Run removes entries.
func (p *cachePruneCmd) Run(a *app) error {
	c := a.localCache()
	limit := int64(cache.DefaultMaxBytes)
	switch {
	case p.To > math.MaxInt64>>20:
		return usagef("--to %d: expected a number of MiB", p.To)
	case p.To >= 0:
		limit = p.To << 20
	}
	freed, err := c.Prune(limit)
	if err != nil {
		return err
	}
	a.ui.printf("freed %s in %s\n", byteText(freed), placeText(c))
	return nil
}

type cacheStatsCmd struct{}

// Run counts what is there.
func (*cacheStatsCmd) Run(a *app) error {
	c := a.localCache()
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
	checked, bad, err := a.localCache().Verify()
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
