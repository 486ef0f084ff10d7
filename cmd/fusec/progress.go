package main

import (
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"
)

// progressBar shows how far a long run is, on a terminal; elsewhere it does nothing.
type progressBar struct {
	writer  progress.Writer // nil where nothing is shown
	tracker *progress.Tracker
	ended   chan struct{}
}

// newProgressBar shows a bar where the error stream is a terminal and there is more
// than one thing to wait for.
func newProgressBar(a *app, total int) *progressBar {
	u, b := a.ui, &progressBar{ended: make(chan struct{})}
	if total < 2 || !isTerminal(u.err) || a.getenv("TERM") == "dumb" {
		return b
	}
	b.tracker = &progress.Tracker{Total: int64(total)}
	b.writer = progress.NewWriter()
	b.writer.SetOutputWriter(u.err)
	b.writer.SetStyle(progress.StyleBlocks)
	b.writer.SetTrackerPosition(progress.PositionRight)
	b.writer.SetUpdateFrequency(250 * time.Millisecond)
	b.writer.SetMessageLength(44)
	b.writer.Style().Visibility.ETA = true
	if u.errColor {
		b.writer.Style().Colors = progress.StyleColorsExample
	}
	b.writer.AppendTracker(b.tracker)
	go func() {
		b.writer.Render()
		close(b.ended)
	}()
	return b
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (b *progressBar) shown() bool { return b.writer != nil }

// begin names what is under way.
func (b *progressBar) begin(title string) {
	if b.shown() {
		b.tracker.UpdateMessage(title)
	}
}

func (b *progressBar) done() {
	if b.shown() {
		b.tracker.Increment(1)
	}
}

// end lets the bar stand as it is. A second end does nothing.
func (b *progressBar) end() {
	if !b.shown() {
		return
	}
	for {
		b.writer.Stop() // which is lost on a writer that has not begun yet
		select {
		case <-b.ended:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// at shows how much of how much is done.
func (b *progressBar) at(done, total int) {
	if b.shown() {
		b.tracker.UpdateTotal(int64(total))
		b.tracker.SetValue(int64(done))
	}
}

// loadBar shows how many kernels of a run are on the device, once that takes long: a
// start with all of them in the cache shows nothing.
type loadBar struct {
	app   *app
	began time.Time
	bar   *progressBar // nil until it is shown
}

func (a *app) newLoadBar() *loadBar { return &loadBar{app: a, began: time.Now()} }

// at is runtime.Options.OnLoad of a device that readies one function at a time.
func (b *loadBar) at(done, needed int) {
	const long = 500 * time.Millisecond
	if b.bar == nil && done < needed && time.Since(b.began) > long {
		b.bar = newProgressBar(b.app, needed)
		b.bar.begin("compiling kernels")
	}
	if b.bar != nil {
		b.bar.at(done, needed)
	}
}

// end lets the bar stand as it is.
func (b *loadBar) end() {
	if b.bar != nil {
		b.bar.end()
	}
}
