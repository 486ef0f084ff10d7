// Package conformance holds every engine to the reference interpreter: the CPU engine, the
// simulated devices, and a GPU where there is one. It has what such comparisons need (engines by
// name, inputs for a graph, references with their tolerances, compile checks), and its tests are one
// table of programs for all of the engines. It is for the tests and the tools of this module.
//
//	e, err := conformance.Open("sm_90a", conformance.Options{})
//	p, err := e.Load(fusec.Source{Name: "g.fuse", Text: text}, fusec.Options{})
//	args, err := conformance.Inputs(p.Graph(), sizes)
//	err = p.Check(ctx, args)
package conformance
