// Package grad differentiates graphs: Reverse adds to a graph the values that compute the
// gradients of its results.
//
// A value reads others at indices that are functions of its ranges, so the adjoint of every
// read has one form. The element u of the tensor that is read gets, for each point of the
// reader whose index is u, the reader's adjoint times the partial derivative with respect to
// that read. The equation index == u is solved for the reader's ranges where that is possible
// (solve.go), so that the sum is over few points. Where it is not, the equation stays as the
// predicate of the sum. Either way an element gathers its terms in a fixed order: there are no
// atomics, and two runs give the same bits.
//
// The package must not know the language, devices or how graphs are planned.
package grad
