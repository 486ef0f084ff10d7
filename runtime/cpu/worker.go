package cpu

import "github.com/fusec/fusec/ir"

// class is how values of a dtype are held between load and store.
type class uint8

const (
	classF32 class = iota // f32 and the narrower floats
	classF64
	classInt // integers and bool, as int64
	numClasses
)

func classOf(t ir.DType) class {
	switch {
	case !t.IsFloat():
		return classInt
	case t == ir.F64:
		return classF64
	}
	return classF32
}

// operand is where a value lives: a tile register, or a scalar register, which
// holds float64 for both float classes.
type operand struct {
	class class
	vec   bool
	reg   int
	stage stage
}

// stage says how often a value is computed, fewest evaluations first.
type stage uint8

const (
	stageConst   stage = iota // before the first job
	stageJob                  // once a job: a row, or a tile of rows
	stageSection              // at the start of a section: from results of earlier ones
	stageStep                 // at each step of the pass over the columns
)

// instr is one instruction: run reads and writes the registers it names.
type instr struct {
	run  func(w *worker, i *instr)
	dst  operand
	src  [4]operand // those not used have reg -1
	view bool       // run points the register at memory instead of filling it
}

// worker is the state of one goroutine: registers, indices, and the buffers of
// the call. It is used by one job at a time.
type worker struct {
	at  []int64 // current index of each range; of the vector range, the tile's first
	n   int     // lanes of the current tile
	f32 [][]float32
	f64 [][]float64
	i64 [][]int64
	sf  []float64
	si  []int64

	bufs [][]byte // by kernel argument
	step int64    // number of the current step

	panels []panel
	group  int64 // which jobs share panels with the current one; from 1

	keep32 [][]float32 // full-level values of the row, by kept local
	keep64 [][]float64
	keepI  [][]int64
}

func f32s(w *worker, r int) []float32 { return w.f32[r][:w.n] }
func f64s(w *worker, r int) []float64 { return w.f64[r][:w.n] }
func ints(w *worker, r int) []int64   { return w.i64[r][:w.n] }

// bank is access to the tile registers of one class.
type bank[T element] func(w *worker, reg int) []T

// take returns an idle worker, or a new one, for a run over bufs.
func (c *code) take(bufs [][]byte) *worker {
	w, ok := c.idle.Get().(*worker)
	if !ok {
		w = c.newWorker()
	}
	w.bufs = bufs
	for k := range w.panels {
		clear(w.panels[k].group)
	}
	return w
}

// put makes a worker idle; it forgets the caller's memory.
func (c *code) put(w *worker) {
	w.bufs = nil
	for r, used := range c.used[classF32] {
		if !used {
			w.f32[r] = nil
		}
	}
	for r, used := range c.used[classF64] {
		if !used {
			w.f64[r] = nil
		}
	}
	c.idle.Put(w)
}

// newWorker returns a worker with the registers of c and its constants loaded.
func (c *code) newWorker() *worker {
	w := &worker{at: make([]int64, c.slots)}
	w.sf, w.si = append(w.sf, c.constF...), append(w.si, c.constI...)
	w.f32 = tiles[float32](c, classF32)
	w.f64 = tiles[float64](c, classF64)
	w.i64 = tiles[int64](c, classInt)
	w.keep32 = rows[float32](c, classF32)
	w.keep64 = rows[float64](c, classF64)
	w.keepI = rows[int64](c, classInt)
	return w
}

// tiles makes the tile registers of a class that need memory.
func tiles[T element](c *code, of class) [][]T {
	out := make([][]T, c.regs[of])
	for r, used := range c.used[of] {
		if used {
			out[r] = make([]T, c.tile)
		}
	}
	return out
}

// rows makes the memory of the kept locals of a class.
func rows[T element](c *code, of class) [][]T {
	out := make([][]T, len(c.kept))
	for k, class := range c.kept {
		if class == of {
			out[k] = make([]T, c.steps*c.tile)
		}
	}
	return out
}

func (w *worker) exec(list []instr) {
	for i := range list {
		list[i].run(w, &list[i])
	}
}
