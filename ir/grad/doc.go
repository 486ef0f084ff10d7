// Package grad differentiates graphs: Reverse adds to a graph the values that compute the
// gradients of its results.
//
// A value reads others at indices that are functions of its ranges, so every read has an
// adjoint of one form: the element u of what is read gets, for each point of the reader
// whose index is u, the reader's adjoint times the partial derivative by that read. The
// equation index == u is solved for the reader's ranges where that can be done (solve.go),
// so that the sum is one over few points. Where it cannot, the equation stays as the
// predicate of the sum. Either way an element gathers what it gets, in a fixed order: there
// are no atomics, and two runs give the same bits.
//
// The package must not know the language, devices or how graphs are planned.
package grad
