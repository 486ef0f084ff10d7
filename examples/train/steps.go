package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// queuedSteps is how many steps are queued at most before their losses are waited for. The device goes from step to step
// without waiting for this program, and the losses of a step cost no wait of their own.
const queuedSteps = 16

// queuedStep is the host memory of a step that is queued: what it takes from there, and its loss.
type queuedStep struct {
	inputs map[string]*runtime.HostBuffer
	loss   *runtime.HostBuffer
}

func (q *queuedStep) close() error {
	var errs []error
	for _, b := range q.inputs {
		errs = append(errs, b.Close())
	}
	if q.loss != nil {
		errs = append(errs, q.loss.Close())
	}
	return errors.Join(errs...)
}

// Step takes one step. The gradients stay on the device, and the state is updated there.
func (t *Trainer) Step(ctx context.Context) error { return t.Steps(ctx, 1) }

// Steps takes n steps.
func (t *Trainer) Steps(ctx context.Context, n int) error {
	for n > 0 {
		group := min(n, queuedSteps)
		for i := range group {
			if err := t.queue(ctx, i); err != nil {
				return errors.Join(err, t.stream.Wait(ctx))
			}
		}
		if err := t.stream.Wait(ctx); err != nil {
			return err
		}
		for _, q := range t.queued[:group] {
			t.Losses = append(t.Losses, float32(q.loss.Tensor().At()))
		}
		n -= group
	}
	return nil
}

// queue queues a step behind i others.
func (t *Trainer) queue(ctx context.Context, i int) error {
	batch, err := t.model.Batch(len(t.Losses) + i + 1)
	if err != nil {
		return err
	}
	if i == len(t.queued) {
		q := &queuedStep{inputs: map[string]*runtime.HostBuffer{}}
		t.queued = append(t.queued, q)
		if q.loss, err = t.device.NewHostBuffer(t.loss.DType()); err != nil {
			return err
		}
	}
	q := t.queued[i]
	args := runtime.Args{"l": t.loss}
	for name, b := range t.gradients {
		args[name] = b
	}
	for name, value := range batch {
		if args[name], err = t.upload(q, name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := t.state.Queue(ctx, t.stream, t.gradient, args); err != nil {
		return err
	}
	if err := t.stream.Download(q.loss.Tensor(), t.loss); err != nil {
		return err
	}
	return t.state.Queue(ctx, t.stream, t.update, t.gradients)
}

// upload queues the copy of an input to its buffer, by way of memory that stays as it is until the copy is done. What is a
// buffer already is used as it is.
func (t *Trainer) upload(q *queuedStep, name string, value any) (any, error) {
	x, ok := value.(*tensor.Tensor)
	b := t.inputs[name]
	if !ok || b == nil {
		return value, nil
	}
	pinned := q.inputs[name]
	if pinned == nil {
		var err error
		if pinned, err = t.device.NewHostBuffer(x.DType, x.Shape...); err != nil {
			return nil, err
		}
		q.inputs[name] = pinned
	}
	if len(x.Data) != len(pinned.Tensor().Data) {
		return nil, fmt.Errorf("it is %v, and was %v in an earlier step", x, pinned.Tensor())
	}
	copy(pinned.Tensor().Data, x.Data)
	return b, t.stream.Upload(b, pinned.Tensor())
}
