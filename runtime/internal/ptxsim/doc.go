// Package ptxsim runs PTX on the CPU, so that tests execute generated kernels where there is no
// GPU. It follows the PTX ISA, not a chip: warps of 32 lanes with their own program counters,
// barriers, asynchronous copies that land as late as they may, clusters with distributed shared
// memory. A mistake of a kernel is an error that names the instruction, such as an access
// outside of allocations, or a lane that never reaches a barrier.
//
// Memory is always coherent here: fences, scopes and caches have no effect, and a missing fence
// is not found. Unordered accesses to shared memory are found if Launch.Races is set.
//
// A launch runs one cluster of blocks after the other, on one goroutine, always in the
// same order: results are the same each time. It is meant for small tensors; some 10^8
// lanes' instructions take a second.
//
// Approximate instructions (ex2.approx, rsqrt.approx) are computed in f64 and rounded:
// better than a GPU's, within the tolerance that tests need for a GPU anyway. So are the
// sums of matrix instructions, whose order and precision PTX leaves open.
package ptxsim
