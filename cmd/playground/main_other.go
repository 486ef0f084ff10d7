//go:build !js

package main

import (
	"fmt"
	"io"
	"os"
)

// main answers for the program on the standard input: what the page would be told.
func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(analyse(string(text), true))
}
