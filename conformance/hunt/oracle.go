package hunt

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime/tensor"
)

// ErrUnknown is the answer of an oracle that cannot tell.
var ErrUnknown = errors.New("the oracle does not know this program")

// An Oracle is testdata/reference/oracle.py under way: the language in terms of NumPy, which
// judges the interpreter. It is for one goroutine.
type Oracle struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

// StartOracle runs the script by a python that has NumPy.
func StartOracle(python, script string) (*Oracle, error) {
	cmd := exec.Command(python, script)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Oracle{in, bufio.NewReader(out), cmd}, nil
}

// Close ends the oracle.
func (o *Oracle) Close() error {
	return errors.Join(o.in.Close(), o.cmd.Wait())
}

type oracleTensor struct {
	Name  string `json:"name,omitempty"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
	Data  []byte `json:"data"` // float64 or int64
}

type question struct {
	Sizes   map[string]int64 `json:"sizes"`
	Inputs  []oracleTensor   `json:"inputs"`
	Code    string           `json:"code"`
	Outputs []string         `json:"outputs"`
}

type reply struct {
	Results        []oracleTensor
	Unknown, Error string
}

// Judge asks whether the interpreter is right about a program; ErrUnknown where the oracle
// cannot say.
func (o *Oracle) Judge(p *gen.Program) error {
	code, ok := p.Python()
	if !ok {
		return ErrUnknown
	}
	r, err := reference(p)
	if err != nil {
		return err
	}
	if r.Fault != nil || r.Graph.Numerics == ir.Strict {
		return ErrUnknown // it does not round, and reads 0 outside
	}
	answer, err := o.ask(question{p.Sizes, encoded(r), code, names(p.Outputs)})
	if err != nil {
		return err
	}
	switch {
	case answer.Unknown != "":
		return ErrUnknown
	case answer.Error != "":
		return fmt.Errorf("the oracle fails: %s\n%s", answer.Error, code)
	}
	return r.judged(answer.Results)
}

func (o *Oracle) ask(q question) (answer reply, err error) {
	if err := json.NewEncoder(o.in).Encode(q); err != nil {
		return reply{}, err
	}
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		return reply{}, fmt.Errorf("the oracle ended: %w", err)
	}
	return answer, json.Unmarshal(line, &answer)
}

func names(values []gen.Value) (out []string) {
	for _, v := range values {
		out = append(out, v.Name)
	}
	return out
}

func encoded(r *Reference) (out []oracleTensor) {
	for i, v := range r.Graph.Inputs {
		x := r.Inputs[i]
		t := oracleTensor{Name: v.Name, Type: v.Type.String(), Shape: x.Shape, Data: []byte{}}
		for _, f := range x.F {
			t.Data = binary.LittleEndian.AppendUint64(t.Data, math.Float64bits(f))
		}
		for _, n := range x.I {
			t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(n))
		}
		out = append(out, t)
	}
	return out
}

// judged compares the oracle's results with the interpreter's as if they were an engine's.
func (r *Reference) judged(results []oracleTensor) error {
	got := map[string]*tensor.Tensor{}
	for i, o := range r.Graph.Outputs {
		x := interp.New(o.Value.Type, results[i].Shape...)
		if results[i].Type != o.Value.Type.String() {
			return fmt.Errorf("%s is %s for the oracle, and %s for the interpreter", o.Name, results[i].Type, o.Value.Type)
		}
		if len(results[i].Data) != 8*x.Len() {
			return fmt.Errorf("%s: %d bytes for the shape %v", o.Name, len(results[i].Data), x.Shape)
		}
		for n := range x.Len() {
			word := binary.LittleEndian.Uint64(results[i].Data[8*n:])
			if x.F != nil {
				x.F[n] = math.Float64frombits(word)
			} else {
				x.I[n] = int64(word)
			}
		}
		t, err := tensor.FromBytes(x.Type, x.Bytes(), x.Shape...)
		if err != nil {
			return err
		}
		got[o.Name] = t
	}
	return r.Check(got)
}
