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
	assert.Contains(t, refused(t, Options{Dir: filepath.Join(file, "below")}), "cannot make the folder")
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
