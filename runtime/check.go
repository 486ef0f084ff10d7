package runtime

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// checkProgram refuses a program whose parts do not fit together, so that no later step reads
// past the end of a list. Programs may come from files, which may be damaged.
func checkProgram(p *ir.Program) error {
	all := ir.Ops()
	c := &checker{program: p, first: all[0], last: all[len(all)-1]}
	c.require(len(p.Defaults) == 0 || len(p.Defaults) == len(p.Symbols), "it has %d defaults for %d symbols",
		len(p.Defaults), len(p.Symbols))
	output := false
	for _, param := range p.Params {
		c.require(param.Output || !output, "input %s stands behind an output", param.Name)
		output = output || param.Output
		c.require(!param.InPlace || c.hasInput(param.State), "output %s takes the place of %q, which is no input", param.Name, param.State)
		c.sizes(param.Shape...)
	}
	for _, t := range p.Temps {
		c.sizes(t.Bytes)
	}
	c.sizes(p.Counters...)
	c.sizes(p.Divisors...)
	for _, check := range p.Constraints {
		c.sizes(check.Cond)
	}
	for _, check := range p.Checks {
		c.require(len(check.Names) == len(check.Shape), "a check of %s has %d names for %d sizes", check.Tensor,
			len(check.Names), len(check.Shape))
		c.sizes(check.Extent)
		c.sizes(check.Shape...)
	}
	for _, u := range p.Units {
		c.unit(u)
	}
	for _, m := range p.TensorMaps {
		c.tensorMap(m)
	}
	for _, l := range p.Launches {
		c.launch(l)
	}
	if c.err != nil {
		return fmt.Errorf("graph %s: malformed program: %w", p.Name, c.err)
	}
	return nil
}

// hasInput reports whether the program has an input of a name.
func (c *checker) hasInput(name string) bool {
	return slices.ContainsFunc(c.program.Params, func(p ir.Param) bool { return p.Name == name && !p.Output })
}

type checker struct {
	program     *ir.Program
	first, last ir.Op // that compute
	err         error
}

func (c *checker) require(ok bool, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) unit(u ir.Unit) {
	const maxThreads, maxShared = 1024, 1 << 20
	c.require(u.Source >= 0 && u.Source < len(c.program.Sources), "kernel %s has no source", u.Entry)
	for _, n := range u.Block {
		c.require(n > 0 && n <= maxThreads, "kernel %s has blocks of %v threads", u.Entry, u.Block)
	}
	const maxCluster = 16
	c.require(u.Cluster >= 0 && u.Cluster <= maxCluster, "kernel %s has clusters of %d blocks", u.Entry, u.Cluster)
	c.require(u.Shared >= 0 && u.Shared <= maxShared, "kernel %s has %d bytes of shared memory", u.Entry, u.Shared)
}

func (c *checker) launch(l ir.Launch) {
	c.require(len(l.Variants) > 0, "kernel %s has no variants", l.Kernel)
	c.ifAny(l.When, l.Reads, l.Writes)
	for _, v := range l.Variants {
		c.require(v.Unit >= 0 && v.Unit < len(c.program.Units), "kernel %s has no unit", l.Kernel)
		c.ifAny(v.When)
		c.sizes(v.Grid[:]...)
		for _, a := range v.Args {
			c.require(c.argument(a), "kernel %s has an unknown argument", l.Kernel)
		}
	}
}

// ifAny checks formulas that need not be there.
func (c *checker) ifAny(sizes ...ir.Size) {
	for _, s := range sizes {
		if len(s) > 0 {
			c.sizes(s)
		}
	}
}

func (c *checker) argument(a ir.LaunchArg) bool {
	limit := 0
	switch a.Kind {
	case ir.ArgParam:
		limit = len(c.program.Params)
	case ir.ArgTemp:
		limit = len(c.program.Temps)
	case ir.ArgSize:
		limit = len(c.program.Symbols)
	case ir.ArgTensorMap:
		limit = len(c.program.TensorMaps)
	case ir.ArgCounters:
		limit = len(c.program.Counters)
	case ir.ArgCheck:
		limit = 2 * len(c.program.Checks)
	case ir.ArgFactor:
		limit = len(c.program.Divisors)
	}
	return a.Index >= 0 && a.Index < limit
}

func (c *checker) tensorMap(m ir.TensorMap) {
	const most, widest, longest = 5, 256, 8 // dims of a map, elements of a box along one, and the longest step
	rank := len(m.Dims)
	c.require(m.Of.Kind == ir.ArgParam || m.Of.Kind == ir.ArgTemp, "a tensor map is of no tensor")
	c.require(c.argument(m.Of), "a tensor map is of an unknown tensor")
	c.require(rank >= 1 && rank <= most && len(m.Strides) == rank-1 && len(m.Box) == rank,
		"a tensor map has %d dims, %d strides and a box of %d", rank, len(m.Strides), len(m.Box))
	c.require(len(m.Steps) == 0 || len(m.Steps) == rank, "a tensor map of %d dims has %d steps", rank, len(m.Steps))
	for _, n := range m.Steps {
		c.require(n > 0 && n <= longest, "a tensor map has steps of %v", m.Steps)
	}
	for _, n := range m.Box {
		c.require(n > 0 && n <= widest, "a tensor map has a box of %v", m.Box)
	}
	_, ok := tensorMapTypes[m.DType]
	c.require(ok, "a tensor map has elements that there is no map for")
	c.require(!m.TF32 || m.DType == ir.F32, "a tensor map rounds %v to tf32", m.DType)
	_, ok = tensorMapSwizzles[m.Swizzle]
	c.require(ok, "a tensor map has a swizzle of %d bytes", m.Swizzle)
	if len(m.Offset) > 0 {
		c.sizes(m.Offset)
	}
	c.sizes(m.Dims...)
	c.sizes(m.Strides...)
}

// sizes checks that each leaves exactly one value on the stack.
func (c *checker) sizes(list ...ir.Size) {
	for _, size := range list {
		depth := 0
		for _, step := range size {
			switch step.Op {
			case ir.OpConst:
				depth++
			case ir.OpSym:
				c.require(step.Val >= 0 && step.Val < int64(len(c.program.Symbols)), "a size names no symbol")
				depth++
			default:
				arity, ok := c.arity(step.Op)
				c.require(ok && arity <= depth, "a size is malformed")
				depth += 1 - arity
			}
			if c.err != nil {
				return
			}
		}
		c.require(depth == 1, "a size is malformed")
	}
}

// arity is the number of arguments of an operation that sizes may hold.
func (c *checker) arity(op ir.Op) (arity int, ok bool) {
	const most = 3 // that ir.Size.Eval takes
	if op < c.first || op > c.last {
		return 0, false
	}
	info := op.Info()
	return info.Arity, info.Int != nil && info.Arity >= 1 && info.Arity <= most
}
