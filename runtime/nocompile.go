package runtime

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/runtime/cache"
)

// NoCompileEnv is the environment variable that forbids compiling, as
// Options.NoCompile does: any value but "", "0" and "false".
const NoCompileEnv = "FUSEC_NO_COMPILE"

func forbidden(value string) bool { return value != "" && value != "0" && value != "false" }

// A NotCompiledError is a kernel that would have to be compiled where that is
// forbidden.
type NotCompiledError struct {
	Kernel string
	Arch   string // sm_90a
	Key    cache.Key
	// Nearest is the stored kernel that shares most with it, and Differ are the fields
	// of the keys that they do not share; nil where no kernel is stored.
	Nearest *cache.Info
	Differ  []string
}

// Error says what would have been compiled, what is there instead, and what to do.
func (e *NotCompiledError) Error() string {
	near := "no kernel is stored"
	if e.Nearest != nil {
		near = fmt.Sprintf("the nearest entry, %s, differs in %s", short(e.Nearest.Key), strings.Join(e.Differ, ", "))
	}
	return fmt.Sprintf("kernel %s for %s is not compiled (%s): %s; %s forbids compiling it here: "+
		"compile it beforehand (fusec compile), ship a bundle (fusec bundle), or unset %s",
		e.Kernel, e.Arch, short(e.Key), near, NoCompileEnv, NoCompileEnv)
}

// short is a prefix of a key that is long enough to find the entry.
func short(k cache.Key) string { return k.String()[:len(k.Kind)+17] }

// notCompiled looks for the stored kernel that is nearest to a missing one. There is none if
// the cache cannot be listed.
func (c *Compiler) notCompiled(kernel, arch string, key cache.Key) error {
	e := &NotCompiledError{Kernel: kernel, Arch: arch, Key: key}
	if nearest, differ, ok, _ := c.store.Why(key); ok {
		e.Nearest, e.Differ = &nearest, differ
	}
	return e
}
