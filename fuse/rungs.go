package fuse

import "github.com/fusec/fusec/ir"

// rungs is the reduction ladder of rows held on chip: threads of a block on a
// row, vectors each of them holds, and blocks of a cluster on a row. The first
// that takes a row is used. Rows that are no whole number of vectors have fewer
// rungs: each is one more kernel to compile for a program that meets many lengths.
var rungs = []rung{
	{32, 1, 1, false}, {32, 4, 1, true}, {128, 2, 1, false}, {256, 2, 1, false}, {512, 2, 1, false}, {512, 4, 1, true},
	{1024, 4, 1, true}, {512, 4, 2, true}, {512, 4, 4, true}, {512, 4, 8, true}, {1024, 4, 8, true},
}

type rung struct {
	threads, items, cluster int
	singles                 bool // also for rows of single elements
}

// fit is the number of vectors a thread of the rung holds when one column takes
// the given registers.
func (r rung) fit(words float64, vector int) int {
	items := r.items
	if vector == 1 {
		items = min(items*scalarItems, largestScalar)
	}
	for items > 1 && words*float64(items*vector) > rowRegisters(r.threads) {
		items /= 2
	}
	return items
}

// columns is the longest row the rung takes.
func (r rung) columns(words float64, vector int) int {
	return r.threads * r.cluster * r.fit(words, vector) * vector
}

func (r rung) schedule(words float64, vector int) ir.Schedule {
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: max(r.threads, laneBlock), RowThreads: r.threads, Vector: vector, Items: r.fit(words, vector)}
	if s.Items*vector >= fullThread { // else the compiler takes few registers by itself
		s.MinBlocks = residentThreads / s.Threads
	}
	if r.cluster > 1 {
		s.Cluster = r.cluster
	}
	return s
}
