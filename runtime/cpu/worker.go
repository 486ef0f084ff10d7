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
	stageStep                 // at each step of the sweep over the columns
)

// instr is one instruction: run reads and writes the registers it names.
type instr struct {
	run  func(w *worker, i *instr)
	dst  operand
	src  [3]operand // those not used have reg -1
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

// newWorker returns a worker with the registers of c and its constants loaded.
func (c *code) newWorker() *worker {
	w := &worker{at: make([]int64, c.slots), sf: append([]float64(nil), c.constF...), si: append([]int64(nil), c.constI...)}
	w.f32, w.f64, w.i64 = make([][]float32, c.regs[classF32]), make([][]float64, c.regs[classF64]), make([][]int64, c.regs[classInt])
	for r, used := range c.used[classF32] {
		if used {
			w.f32[r] = make([]float32, c.tile)
		}
	}
	for r, used := range c.used[classF64] {
		if used {
			w.f64[r] = make([]float64, c.tile)
		}
	}
	for r, used := range c.used[classInt] {
		if used {
			w.i64[r] = make([]int64, c.tile)
		}
	}
	w.keep32, w.keep64, w.keepI = make([][]float32, len(c.kept)), make([][]float64, len(c.kept)), make([][]int64, len(c.kept))
	for k, class := range c.kept {
		switch class {
		case classF32:
			w.keep32[k] = make([]float32, c.steps*c.tile)
		case classF64:
			w.keep64[k] = make([]float64, c.steps*c.tile)
		default:
			w.keepI[k] = make([]int64, c.steps*c.tile)
		}
	}
	return w
}

func (w *worker) exec(list []instr) {
	for i := range list {
		list[i].run(w, &list[i])
	}
}
