package main

import "syscall/js"

// main gives the page its function, fusecAnalyse(text, run), and waits: the page ends it.
func main() {
	js.Global().Set("fusecAnalyse", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return analyse(args[0].String(), args[1].Bool())
	}))
	js.Global().Call("fusecReady")
	select {}
}
