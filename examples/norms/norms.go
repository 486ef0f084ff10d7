// Package norms shows how a Go program calls graphs: fusec gen writes norms_fuse.go,
// in which each graph is a method with typed tensors and sizes.
package norms

//go:generate go run github.com/fusec/fusec/cmd/fusec gen norms.fuse
