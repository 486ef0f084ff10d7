package ir

// Kept returns what is kept with a graph under a key: results that take long to compute and that many passes ask for. Values of
// the graph may have changed since, so whoever keeps a result keeps what it depends on too, and compares that. A clone of the
// graph starts with nothing.
func Kept[T any](g *Graph, key any) (what T, ok bool) {
	what, ok = g.kept[key].(T)
	return what, ok
}

// Keep keeps what Kept returns.
func (g *Graph) Keep(key, what any) { put(&g.kept, key, what) }

// Forget drops all that is kept with a graph.
func (g *Graph) Forget() { g.kept = nil }
