package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
)

const (
	npyMagic = "\x93NUMPY"
	// maxHeader bounds what a file can make the reader allocate before it has
	// shown any elements. Real headers have a few hundred bytes.
	maxHeader = 1 << 20
)

// npyHeader is the Python dictionary at the start of an .npy file.
type npyHeader struct {
	descr   string
	fortran bool
	shape   []int
	size    int // bytes of the header, with magic and length
}

// readHeader reads magic, version, length and dictionary.
func readHeader(r io.Reader) (npyHeader, error) {
	var pre [12]byte
	n, err := io.ReadFull(r, pre[:10])
	if start := string(pre[:min(n, len(npyMagic))]); !strings.HasPrefix(npyMagic, start) { // before its length: a text may be short
		return npyHeader{}, fmt.Errorf("not an .npy file: expected %q at its start, found %q", npyMagic, start)
	}
	if err != nil {
		return npyHeader{}, truncated("the 10-byte preamble", err)
	}
	at, length := 10, int(binary.LittleEndian.Uint16(pre[8:]))
	switch major, minor := pre[6], pre[7]; {
	case major < 1 || major > 3:
		return npyHeader{}, fmt.Errorf("expected .npy version 1, 2 or 3, found %d.%d", major, minor)
	case major > 1:
		if _, err := io.ReadFull(r, pre[10:]); err != nil {
			return npyHeader{}, truncated("the header length", err)
		}
		long := binary.LittleEndian.Uint32(pre[8:])
		if long > maxHeader {
			return npyHeader{}, fmt.Errorf("expected a header of at most %d bytes, found %d", maxHeader, long)
		}
		at, length = 12, int(long)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return npyHeader{}, truncated(fmt.Sprintf("the %d-byte header", length), err)
	}
	h, err := parseHeader(string(text))
	h.size = at + length
	return h, err
}

func truncated(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("truncated: the file ends within %s", what)
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// parseHeader reads the dictionary literal. NumPy writes exactly three keys, and
// refuses any other, as this does.
func parseHeader(text string) (npyHeader, error) {
	p := &literal{rest: text}
	var h npyHeader
	seen := map[string]bool{}
	p.expect("{")
	for !p.accept("}") && p.err == nil {
		key := p.str()
		p.expect(":")
		h.set(p, key)
		if seen[key] {
			p.fail("key %q is there twice", key)
		}
		seen[key] = true
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.skipSpace(); p.err == nil && p.rest != "" {
		p.fail("expected the end of the header, found %.20q", p.rest)
	}
	if p.err == nil && len(seen) != 3 {
		p.fail("expected the keys descr, fortran_order and shape, found %d keys", len(seen))
	}
	return h, p.err
}

func (h *npyHeader) set(p *literal, key string) {
	switch key {
	case "descr":
		if p.peek("[") {
			p.fail("structured elements are not supported: store one array a field")
			return
		}
		h.descr = p.str()
	case "fortran_order":
		h.fortran = p.boolean()
	case "shape":
		h.shape = p.tuple()
	default:
		p.fail("expected descr, fortran_order or shape, found key %.20q", key)
	}
}

// literal parses the subset of Python literals that headers consist of. The first
// error stays; after it nothing is accepted.
type literal struct {
	rest string
	err  error
}

func (p *literal) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("malformed header: "+format, args...)
	}
	p.rest = ""
}

func (p *literal) skipSpace() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *literal) peek(token string) bool {
	p.skipSpace()
	return strings.HasPrefix(p.rest, token)
}

func (p *literal) accept(token string) bool {
	if !p.peek(token) {
		return false
	}
	p.rest = p.rest[len(token):]
	return true
}

func (p *literal) expect(token string) {
	if !p.accept(token) {
		p.fail("expected %q, found %.20q", token, p.rest)
	}
}

func (p *literal) str() string {
	for _, quote := range []string{"'", `"`} {
		if !p.accept(quote) {
			continue
		}
		if s, rest, ok := strings.Cut(p.rest, quote); ok {
			p.rest = rest
			return s
		}
	}
	p.fail("expected a string, found %.20q", p.rest)
	return ""
}

func (p *literal) boolean() bool {
	if p.accept("True") {
		return true
	}
	if !p.accept("False") {
		p.fail("expected True or False, found %.20q", p.rest)
	}
	return false
}

func (p *literal) tuple() []int {
	dims := []int{}
	p.expect("(")
	for !p.accept(")") && p.err == nil {
		if dims = append(dims, p.integer()); len(dims) > MaxRank {
			p.fail("expected at most %d dimensions", MaxRank)
		}
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	return dims
}

func (p *literal) integer() int {
	p.skipSpace()
	digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
	n, err := strconv.Atoi(digits)
	if err != nil {
		p.fail("expected a dimension, found %.20q", p.rest)
		return 0
	}
	p.rest = p.rest[len(digits):]
	p.accept("L") // Python 2 wrote long integers so
	return n
}

// headerText returns the start of an .npy file up to the elements, padded so that
// they begin at a multiple of 64 bytes.
func headerText(t ir.DType, shape []int) []byte {
	var s strings.Builder
	for _, d := range shape {
		fmt.Fprintf(&s, "%d, ", d)
	}
	dims := strings.TrimSuffix(s.String(), " ")
	if len(shape) > 1 {
		dims = strings.TrimSuffix(dims, ",")
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descrOf(t), dims)
	const pre = len(npyMagic) + 4
	pad := 63 - (pre+len(dict))%64
	out := append([]byte(npyMagic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(dict)+pad+1))
	out = append(out, dict...)
	return append(append(out, strings.Repeat(" ", pad)...), '\n')
}
