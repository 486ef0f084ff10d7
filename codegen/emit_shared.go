package codegen

import (
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// stagedVectors writes where in shared memory the vectors of each staged read begin: those of the first
// read at the given place, those of each further read so many vectors later.
func (e *emitter) stagedVectors(qualifier, at, vectors string) {
	for _, l := range e.v.Staged {
		name := e.names.Fresh(l.Name + "_next")
		e.staged[l] = name
		e.line("%[1]sauto *%[2]s = reinterpret_cast<%[1]sVec<%[3]s, VECTOR> *>(%[4]s);", qualifier, name,
			spell.StorageType(readOf(l.Def).Type), at)
		at = name + " + " + vectors
	}
}

// stagedBytes is the bytes that one column of all staged reads takes.
func stagedBytes(v *ir.Variant) int {
	bytes := 0
	for _, l := range v.Staged {
		bytes += readOf(l.Def).Type.Size()
	}
	return bytes
}

// bandLength is the elements of shared memory for a band: whole accesses, from the one in which the first line begins
// to the end of the last line.
func bandLength(o ir.Operand, rows, columns int) int {
	const access = 8
	lines, beyond := rows, 0
	if !o.KLast { // a line may be shorter than the tile, which reads on in the next one
		lines, beyond = columns, max(0, rows-o.Band.Pitch)
	}
	return (o.Band.Skip + lines*o.Band.Pitch + beyond + access - 1) / access * access
}
