package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// ui prints. Whether to use colour is decided here and nowhere else.
type ui struct {
	out, err io.Writer
	color    bool // of out
	errColor bool
}

func newUI(out, err io.Writer, color string, getenv func(string) string) *ui {
	return &ui{out: out, err: err, color: wantColor(out, color, getenv), errColor: wantColor(err, color, getenv)}
}

// wantColor: the flag decides, then NO_COLOR, then CLICOLOR_FORCE, then whether w
// is a terminal.
func wantColor(w io.Writer, flag string, getenv func(string) string) bool {
	switch flag {
	case "always":
		return true
	case "never":
		return false
	}
	if getenv("NO_COLOR") != "" {
		return false
	}
	if force := getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && getenv("TERM") != "dumb"
}

// width is how many characters a line may have: the terminal's, else a page's.
func (u *ui) width() int {
	const page, least = 100, 40
	if f, ok := u.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return max(w, least)
		}
	}
	return page
}

// The styles, as the parameters of an escape sequence.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func paint(on bool, style, s string) string {
	if !on || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

func (u *ui) style(style, s string) string { return paint(u.color, style, s) }

func (u *ui) printf(format string, args ...any) { fmt.Fprintf(u.out, format, args...) }

// notef says something beside the result, on the error stream.
func (u *ui) notef(format string, args ...any) {
	fmt.Fprintf(u.err, "%s %s\n", paint(u.errColor, cyan, "fusec:"), fmt.Sprintf(format, args...))
}

func (u *ui) errorf(format string, args ...any) {
	fmt.Fprintf(u.err, "%s %s\n", paint(u.errColor, red, "error:"), fmt.Sprintf(format, args...))
}

// diagnostics prints rendered diagnostics, with the words and carets coloured.
func (u *ui) diagnostics(rendered string) {
	if !u.errColor {
		fmt.Fprint(u.err, rendered)
		return
	}
	for line := range strings.Lines(rendered) {
		body := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(body, "      |"):
			body = paint(true, red, body)
		case strings.Contains(body, ": error: ") && !strings.Contains(body, " | "):
			body = strings.Replace(paint(true, bold, body), "error:", paint(true, red, "error:")+"\x1b["+bold+"m", 1)
		case strings.Contains(body, ": warning: ") && !strings.Contains(body, " | "):
			body = strings.Replace(paint(true, bold, body), "warning:", paint(true, yellow, "warning:")+"\x1b["+bold+"m", 1)
		}
		fmt.Fprintln(u.err, body)
	}
}

// column is the head of a table's column; numbers stand to the right.
type column struct {
	head   string
	number bool
}

func col(head string) column    { return column{head: head} }
func number(head string) column { return column{head, true} }

// table prints rows below heads, if there are any, without lines: it reads as well in a file as on
// a terminal, and cuts by columns.
func (u *ui) table(columns []column, rows [][]string) {
	t := table.NewWriter()
	t.SetStyle(plainTable())
	t.SuppressTrailingSpaces()
	head, headed := table.Row{}, false
	var configs []table.ColumnConfig
	for i, c := range columns {
		head, headed = append(head, u.style(faint, c.head)), headed || c.head != ""
		align := text.AlignLeft
		if c.number {
			align = text.AlignRight
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	if headed {
		t.AppendHeader(head)
	}
	t.SetColumnConfigs(configs)
	for _, r := range rows {
		row := table.Row{}
		for _, cell := range r {
			row = append(row, cell)
		}
		t.AppendRow(row)
	}
	fmt.Fprintln(u.out, t.Render())
}

func plainTable() table.Style {
	s := table.StyleDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	s.Options = table.OptionsNoBordersAndSeparators
	s.Format = table.FormatOptions{}
	return s
}

// pairs prints names and what they are, in two columns.
func (u *ui) pairs(rows [][]string) {
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintf(u.out, "%s  %s\n", u.style(faint, fmt.Sprintf("%-*s", width, r[0])), r[1])
	}
}
