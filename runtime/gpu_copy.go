package runtime

import (
	"errors"
	goruntime "runtime"

	"golang.org/x/sync/errgroup"

	"github.com/fusec/fusec/runtime/cuda"
)

// Large copies between Go memory and the device go through pinned buffers: a few goroutines
// fill or empty some of them while the copy engine works on the others. The driver would do the
// same with one thread.
const (
	stageBytes  = 4 << 20 // of one buffer
	stagedCopy  = 8 << 20 // the smallest copy for which this pays
	stageCopies = 4       // goroutines of one copy at most
)

// A stage is a pinned buffer and the mark of the last copy from or to it.
type stage struct {
	buffer *cuda.HostBuffer
	done   *cuda.Event
}

func newStage(c *cuda.Context) (*stage, error) {
	buffer, err := c.AllocHost(stageBytes)
	if err != nil {
		return nil, err
	}
	done, err := c.NewEvent(false)
	if err != nil {
		return nil, errors.Join(err, buffer.Close())
	}
	return &stage{buffer, done}, nil
}

func (s *stage) close() error { return errors.Join(s.done.Close(), s.buffer.Close()) }

// copyIn queues a copy to the device; src may be changed when it returns.
func (g *gpu) copyIn(s *cuda.Stream, dst cuda.DevicePtr, src []byte) error {
	if len(src) < stagedCopy {
		return s.CopyHtoD(dst, src)
	}
	return g.staged(s, len(src), func(st *stage, from, to int) error {
		pinned := st.buffer.Bytes()[:copy(st.buffer.Bytes(), src[from:to])]
		if err := s.CopyHtoD(dst+cuda.DevicePtr(from), pinned); err != nil {
			return err
		}
		return st.wait(s)
	})
}

// copyOut copies from the device, after what the stream has queued; dst is filled
// when it returns.
func (g *gpu) copyOut(s *cuda.Stream, dst []byte, src cuda.DevicePtr) error {
	if len(dst) < stagedCopy {
		return s.CopyDtoH(dst, src)
	}
	return g.staged(s, len(dst), func(st *stage, from, to int) error {
		pinned := st.buffer.Bytes()[:to-from]
		if err := s.CopyDtoH(pinned, src+cuda.DevicePtr(from)); err != nil {
			return err
		}
		if err := st.wait(s); err != nil {
			return err
		}
		copy(dst[from:to], pinned)
		return nil
	})
}

// wait waits until the stream has passed what it has queued by now.
func (s *stage) wait(stream *cuda.Stream) error {
	if err := s.done.Record(stream); err != nil {
		return err
	}
	return s.done.Synchronize()
}

// staged deals the pieces of a copy of n bytes out to goroutines, each with a stage.
func (g *gpu) staged(s *cuda.Stream, n int, piece func(st *stage, from, to int) error) error {
	copies := min(stageCopies, goruntime.GOMAXPROCS(0))
	var group errgroup.Group
	for first := range copies {
		group.Go(func() error {
			st, err := g.stages.take()
			if err != nil {
				return err
			}
			defer g.stages.put(st)
			for from := first * stageBytes; from < n; from += copies * stageBytes {
				if err := piece(st, from, min(from+stageBytes, n)); err != nil {
					// The copy may still be under way, and must end before the stage is used
					// again.
					return errors.Join(err, s.Synchronize())
				}
			}
			return nil
		})
	}
	return group.Wait()
}
