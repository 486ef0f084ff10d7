// Command examples writes the programs that the playground offers, as JavaScript: the tutorial's, and some more.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fusec/fusec/examples"
)

// offered are the programs in the order of the list.
var offered = []string{"tutorial/1-pointwise.fuse", "tutorial/2-reduction.fuse", "tutorial/3-softmax.fuse", "tutorial/4-product.fuse",
	"tutorial/5-attention.fuse", "tutorial/6-fused.fuse", "tutorial/refused.fuse", "layer_norm.fuse", "cross_entropy.fuse",
	"blur.fuse", "swiglu.fuse"}

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	fmt.Println("const examples = {")
	for _, name := range offered {
		text, err := examples.Files.ReadFile(name)
		if err != nil {
			return err
		}
		entry, err := json.Marshal(string(text))
		if err != nil {
			return err
		}
		fmt.Printf("    %q: %s,\n", name, entry)
	}
	fmt.Println("};")
	return nil
}
