package cache

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// SectionInfo is the name and size of a section.
type SectionInfo struct {
	Name string
	Size int64 // bytes
}

// Info describes an entry without its payload.
type Info struct {
	Key      Key
	Path     string
	Size     int64 // bytes of the file
	Created  time.Time
	Used     time.Time // last use, to the hour
	ReadOnly bool      // it lies in a read-only folder
	Sections []SectionInfo
	Err      error // why the entry cannot be used; then only Path, Size and Used hold
}

// List describes all entries, the most recently used first. It reads only headers; Verify finds
// damage in payloads.
func (c *Cache) List() ([]Info, error) {
	var infos []Info
	var err error
	for _, l := range c.layers {
		entries, _, e := l.scan()
		err = errors.Join(err, e)
		for _, f := range entries {
			infos = append(infos, l.info(f))
		}
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Path, b.Path))
	})
	return infos, err
}

func (l *layer) info(f file) Info {
	i := Info{Path: f.path, Size: f.size, Used: f.used, ReadOnly: !l.writable}
	h, err := l.readHeader(f)
	if err != nil {
		i.Err = fmt.Errorf("%s: %w", f.path, err)
		return i
	}
	i.Key, i.Created, i.Sections = h.key, h.created, h.sections
	return i
}

func (l *layer) readHeader(f file) (header, error) {
	b, info, err := l.fs.Read(f.path, headBytes)
	if err != nil {
		return header{}, err
	}
	h, err := decodeHeader(b, info.Size())
	if err != nil && info.Size() > int64(len(b)) { // the header may go on
		if b, _, err = l.fs.Read(f.path, maxEntry); err != nil {
			return header{}, err
		}
		h, err = decodeHeader(b, int64(len(b)))
	}
	if err == nil && l.path(h.key) != f.path {
		err = fmt.Errorf("%w: found %v", errWrongKey, h.key)
	}
	return h, err
}

// Stats is the state of the writable folder.
type Stats struct {
	Dir         string
	Entries     map[Kind]int
	Bytes       int64 // of entries
	MaxBytes    int64
	Temporary   int       // files being written, or left by dead processes
	Quarantined int       // bad entries kept for inspection
	Swept       time.Time // last sweep; zero for never
}

// Stats counts what is in the writable folder.
func (c *Cache) Stats() (Stats, error) {
	s := Stats{Dir: c.Dir(), Entries: map[Kind]int{}, MaxBytes: c.maxBytes}
	if c.rw == nil {
		return s, nil
	}
	entries, temps, err := c.rw.scan()
	bad, e := c.rw.files(quarantineDir)
	for _, f := range entries {
		s.Entries[f.kind]++
	}
	s.Bytes, s.Temporary, s.Quarantined = sizeOf(entries), len(temps), len(bad)
	if info, err := c.fs.Stat(c.rw.stampPath()); err == nil {
		s.Swept = info.ModTime()
	}
	return s, errors.Join(err, e)
}

// Clear removes every entry of the writable folder, the quarantined ones and the
// leftovers of dead processes. Entries that are being written meanwhile may stay.
func (c *Cache) Clear() (removed int, err error) {
	if c.rw == nil {
		return 0, nil
	}
	entries, temps, err := c.rw.scan()
	bad, e := c.rw.files(quarantineDir)
	err = errors.Join(err, e)
	now := c.now()
	for _, f := range temps {
		if now.Sub(f.used) > tempAge {
			bad = append(bad, f)
		}
	}
	for _, f := range append(entries, bad...) {
		err = errors.Join(err, c.rw.remove(f.path))
	}
	return len(entries), err
}

// Verify reads every entry in full. Those that are damaged are moved aside, in the writable
// folder, and returned with the reason. Entries of other versions of fusec that share the
// folder are not checked.
func (c *Cache) Verify() (checked int, bad []Info, err error) {
	for _, l := range c.layers {
		entries, _, e := l.scan()
		err = errors.Join(err, e)
		for _, f := range entries {
			checked++
			e := l.verify(f)
			if errors.Is(e, errVersion) {
				checked--
				continue
			}
			if e != nil {
				i := Info{Path: f.path, Size: f.size, Used: f.used, ReadOnly: !l.writable, Err: e}
				bad = append(bad, i)
				err = errors.Join(err, l.quarantine(f.path))
			}
		}
	}
	return checked, bad, err
}

func (l *layer) verify(f file) error {
	b, _, err := l.fs.Read(f.path, maxEntry)
	if err != nil {
		if transient(err) {
			return nil // removed meanwhile
		}
		return err
	}
	k, _, err := decodeEntry(b)
	if err == nil && l.path(k) != f.path {
		err = fmt.Errorf("%w: found %v", errWrongKey, k)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// Why explains a miss: the stored entry of the same kind that shares most with k,
// and the fields that it does not share. differ is empty where k itself is stored;
// ok is false where there is no entry of the kind.
func (c *Cache) Why(k Key) (nearest Info, differ []string, ok bool, err error) {
	infos, err := c.List()
	for _, i := range infos { // the most recent comes first, and wins a tie
		if i.Err != nil || i.Key.Kind != k.Kind {
			continue
		}
		if d := k.Differ(i.Key); !ok || len(d) < len(differ) {
			nearest, differ, ok = i, d, true
		}
	}
	return nearest, differ, ok, err
}
