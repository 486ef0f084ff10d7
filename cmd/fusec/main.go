// Command fusec compiles, explains and runs .fuse programs. Each command is one
// file. The package turns flags into calls of the library and results into text:
// it must not decide anything about kernels.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, os.Getenv)) }
