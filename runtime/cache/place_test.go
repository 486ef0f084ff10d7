package cache

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestLocate(t *testing.T) {
	noHome := filepath.Join(os.TempDir(), "fusec-"+strconv.Itoa(os.Getuid()))
	for name, c := range map[string]struct {
		env  func(string) string
		want Place
	}{
		"off":           {env(Env, "off", "HOME", "/h"), Place{}},
		"one":           {env(Env, "/rw"), Place{Dir: "/rw"}},
		"layers":        {env(Env, "/rw:/ro1::/ro2"), Place{Dir: "/rw", ReadOnly: []string{"/ro1", "/ro2"}}},
		"read-only":     {env(Env, ":/ro1"), Place{ReadOnly: []string{"/ro1"}}},
		"xdg":           {env("XDG_CACHE_HOME", "/x", "HOME", "/h"), Place{Dir: "/x/fusec"}},
		"relative xdg":  {env("XDG_CACHE_HOME", "x", "HOME", "/h"), Place{Dir: "/h/.cache/fusec"}},
		"home":          {env("HOME", "/h"), Place{Dir: "/h/.cache/fusec"}},
		"no home":       {env(), Place{Dir: noHome}},
		"relative home": {env("HOME", "."), Place{Dir: noHome}},
	} {
		assert.Equal(t, c.want, Locate(c.env), name)
	}
}

func TestOpenFollowsTheEnvironment(t *testing.T) {
	home := t.TempDir()
	c := Open(Options{Getenv: env("HOME", home)})
	assert.Equal(t, filepath.Join(home, ".cache", "fusec"), c.Dir())
	assert.Empty(t, Open(Options{Getenv: env("HOME", home, Env, "off")}).Dir())
}

// refused opens dir and returns the warning that came of it.
func refused(t *testing.T, o Options) string {
	w := new(warnings)
	o.OnWarning = w.add
	c := Open(o)
	assert.Empty(t, c.Dir())
	create, _ := creator(1)
	_, outcome, err := c.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Unstored, outcome)
	return errors.Join(w.take()...).Error()
}

func TestUnsafeFoldersAreRefused(t *testing.T) {
	open := private(t)
	for _, mode := range []os.FileMode{0o720, 0o702, 0o777} {
		require.NoError(t, os.Chmod(open, mode))
		assert.Contains(t, refused(t, Options{Dir: open}), "other users can write to "+open)
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(open, link))
	assert.Contains(t, refused(t, Options{Dir: link}), "other users can write to "+open, "the target counts")
	require.NoError(t, os.Chmod(open, 0o700))
	assert.Equal(t, open, Open(Options{Dir: link}).Dir(), "a link to a safe folder is resolved")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Contains(t, refused(t, Options{Dir: file}), Env)
	assert.Contains(t, refused(t, Options{Dir: filepath.Join(file, "below")}), "cannot use the folder")
}

func TestFoldersOfOthersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	dir := private(t)
	require.NoError(t, os.Chown(dir, 12345, 12345))
	assert.Contains(t, refused(t, Options{Dir: dir}), "belongs to user 12345")
	assert.Contains(t, refused(t, Options{ReadOnly: []string{dir}}), "expected this user or root")
}

// TestEveryFolderOnTheWayMustBeSafe: nothing on the way to the cache, through links
// too, may be another user's or open to others.
func TestEveryFolderOnTheWayMustBeSafe(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	const other = 12345
	chown := func(path string) { require.NoError(t, os.Lchown(path, other, other)) }
	for name, c := range map[string]struct {
		spoil func(top, middle string)
		want  string // "" where the folder is used
	}{
		"all is well":               {func(string, string) {}, ""},
		"another user's":            {func(_, middle string) { chown(middle) }, "user 12345 can put a folder of theirs in place of"},
		"another user's, two above": {func(top, _ string) { chown(top) }, "user 12345 can put"},
		"another user's, with the sticky bit": {func(_, middle string) {
			chown(middle)
			require.NoError(t, os.Chmod(middle, 0o777|os.ModeSticky))
		}, "user 12345 can put"},
		"open to all": {func(_, middle string) { require.NoError(t, os.Chmod(middle, 0o707)) }, "chmod o-w"},
		"open to all, with the sticky bit": {func(_, middle string) {
			require.NoError(t, os.Chmod(middle, 0o777|os.ModeSticky))
		}, ""},
		"open to a group": {func(_, middle string) {
			require.NoError(t, os.Chown(middle, 0, other))
			require.NoError(t, os.Chmod(middle, 0o770))
		}, "chmod g-w"},
		"open to the user's own group": {func(_, middle string) { require.NoError(t, os.Chmod(middle, 0o770)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			top := private(t)
			middle := filepath.Join(top, "middle")
			dir, missing := filepath.Join(middle, "cache"), filepath.Join(middle, "missing", "cache")
			link := filepath.Join(t.TempDir(), "link")
			require.NoError(t, os.MkdirAll(dir, 0o700))
			require.NoError(t, os.Symlink(middle, link))
			c.spoil(top, middle)
			for _, o := range []Options{{Dir: dir}, {Dir: missing}, {Dir: filepath.Join(link, "cache")},
				{Dir: filepath.Join(link, "new")}, {ReadOnly: []string{dir}}} {
				if c.want != "" {
					assert.Contains(t, refused(t, o), c.want)
				} else if o.Dir != "" {
					want := strings.Replace(o.Dir, link, middle, 1)
					assert.Equal(t, want, open(t, o.Dir).Dir(), "links are followed once, and then not needed")
				}
			}
			if c.want != "" {
				assert.NoDirExists(t, missing, "nothing is made where others decide what it is")
			}
		})
	}
}

// A link is as good as a folder for who wants to replace one.
func TestLinksOfOthersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a link away")
	}
	shared := private(t)
	require.NoError(t, os.Chmod(shared, 0o777|os.ModeSticky))
	dir, link := private(t), filepath.Join(shared, "link")
	require.NoError(t, os.Symlink(dir, link))
	assert.Equal(t, dir, open(t, link).Dir())
	require.NoError(t, os.Lchown(link, 12345, 12345))
	assert.Contains(t, refused(t, Options{Dir: link}), "the link "+link)

	up, loop := filepath.Join(shared, "up"), filepath.Join(shared, "loop")
	require.NoError(t, os.Symlink("./../"+filepath.Base(shared)+"/../"+filepath.Base(shared)+"/deep", up))
	assert.Equal(t, filepath.Join(shared, "deep"), open(t, filepath.Join(shared, "deep")).Dir())
	assert.Equal(t, filepath.Join(shared, "deep"), open(t, up).Dir(), ".. in a target goes up from the folder it is in")
	require.NoError(t, os.Symlink("loop", loop))
	assert.Contains(t, refused(t, Options{Dir: loop}), "too many symbolic links")
}

func TestReadOnlyLayers(t *testing.T) {
	ro, rw := private(t), private(t)
	require.True(t, open(t, ro).Put(testKey(1), testEntry(1)))
	require.NoError(t, os.WriteFile(filepath.Join(ro, "marker"), nil, 0o600))
	before := tree(t, ro)

	c := Open(Options{Dir: rw, ReadOnly: []string{ro}, OnWarning: func(err error) { t.Error(err) }})
	_, o, err := c.GetOrCreate(t.Context(), testKey(1), mustNotCreate(t))
	require.NoError(t, err)
	assert.Equal(t, LayerHit, o)
	create, _ := creator(2)
	_, o, err = c.GetOrCreate(t.Context(), testKey(2), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o)
	infos, err := c.List()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	_, err = c.Clear()
	require.NoError(t, err)
	assert.Equal(t, before, tree(t, ro), "nothing was written")

	only := Open(Options{ReadOnly: []string{ro, filepath.Join(ro, "none")}})
	_, o = only.Get(testKey(1))
	assert.Equal(t, LayerHit, o)
	assert.False(t, only.Put(testKey(2), testEntry(2)))
}

func TestBadEntryOfAReadOnlyLayerIsSkipped(t *testing.T) {
	ro := private(t)
	l := open(t, ro)
	require.True(t, l.Put(testKey(1), testEntry(1)))
	require.NoError(t, os.Truncate(l.rw.path(testKey(1)), 20))
	before := tree(t, ro)
	w := new(warnings)
	c := Open(Options{Dir: private(t), ReadOnly: []string{ro}, OnWarning: w.add})
	create, _ := creator(1)
	_, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o)
	assert.ErrorIs(t, errors.Join(w.take()...), errTruncated)
	assert.Equal(t, before, tree(t, ro))
}

// tree lists the files below dir.
func tree(t *testing.T, dir string) string {
	var names []string
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		names = append(names, path+" "+info.ModTime().String())
		return err
	}))
	return strings.Join(names, "\n")
}
