package cache_test

import (
	"context"
	"fmt"
	"os"

	"github.com/fusec/fusec/runtime/cache"
)

func Example() {
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	key := cache.NewKey(cache.Kernel).String("source", "__global__ void k() {}").Int("arch", 90).Sum()
	compile := func(context.Context) (cache.Entry, error) {
		fmt.Println("compiling")
		return cache.Entry{Sections: []cache.Section{{Name: cache.PTX, Data: []byte(".version 8.4")}}}, nil
	}
	for range 2 { // two processes, say
		c := cache.Open(cache.Options{Dir: dir, OnWarning: func(err error) { fmt.Println(err) }})
		entry, outcome, err := c.GetOrCreate(context.Background(), key, compile)
		fmt.Printf("%s: %s %v\n", outcome, entry.Section(cache.PTX), err)
	}
	// Output:
	// compiling
	// created: .version 8.4 <nil>
	// hit: .version 8.4 <nil>
}
