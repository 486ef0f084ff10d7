package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"unsafe"
)

// A Counting reads counters of the hardware around ranges of work in a context: in each pass as many as
// the hardware counts at a time. It is not safe for concurrent use, and a device has one at a time. Close it.
//
//	Count -> Pass, until all passes are done (in each, Range for every range) -> Values
type Counting struct {
	cupti   *CUPTI
	context *Context
	ranges  int
	asked   int
	known   []int   // which of the metrics that were asked for the chip has
	names   []*byte // of those

	host     uintptr
	profiler uintptr // 0 where it is not enabled
	config   []byte
	data     []byte // what the passes have counted
}

// Count prepares the counting of metrics (dram__bytes_read.sum) in so many ranges. Metrics that the chip
// does not have are left out, unless it has none of them. Counting may slow down all other work on the
// device until Close.
func (l *CUPTI) Count(c *Context, metrics []string, ranges int) (*Counting, error) {
	k := &Counting{cupti: l, context: c, ranges: ranges, asked: len(metrics)}
	err := c.Do(func() error {
		if err := l.call(symProfilerInitialize, uintptr(unsafe.Pointer(&cuptiInitialize{whole[cuptiInitialize]()}))); err != nil {
			return err
		}
		if err := k.open(metrics); err != nil {
			return err
		}
		return k.enable()
	})
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// open makes the host's part, which knows the chip and its metrics, and the configuration.
func (k *Counting) open(metrics []string) error {
	chip := &cuptiChipName{cuptiHead: whole[cuptiChipName](), device: uintptr(k.context.device.handle)}
	if err := k.cupti.call(symChipName, uintptr(unsafe.Pointer(chip))); err != nil {
		return err
	}
	available, err := k.availability()
	if err != nil {
		return err
	}
	host := func() (uintptr, error) {
		p := &cuptiHostInitialize{cuptiHead: whole[cuptiHostInitialize](), profiler: cuptiRangeProfiler, chip: chip.name, availability: first(available)}
		err := k.cupti.call(symHostInitialize, uintptr(unsafe.Pointer(p)))
		runtime.KeepAlive(available)
		if err != nil {
			return 0, fmt.Errorf("%s does not count on it: %w", k.cupti.path, err)
		}
		return p.host, nil
	}
	if err = k.find(metrics, host); err == nil {
		k.host, err = host()
	}
	if err == nil {
		err = k.add(k.host, k.names)
	}
	if err != nil {
		return fmt.Errorf("the chip %s: %w", cString(chip.name), err)
	}
	return k.configure()
}

// availability is which counters the device lets this process read, as CUPTI writes it down; nil where
// it does not say.
func (k *Counting) availability() ([]byte, error) {
	if !k.cupti.lib.has(symAvailability) {
		return nil, nil
	}
	p := &cuptiAvailability{cuptiHead: whole[cuptiAvailability](), context: k.context.handle}
	err := k.cupti.call(symAvailability, uintptr(unsafe.Pointer(p)))
	if err == nil && p.bytes > 0 {
		image := image(p.bytes)
		p.image = first(image)
		if err = k.cupti.call(symAvailability, uintptr(unsafe.Pointer(p))); err == nil {
			return image, nil
		}
	}
	if errors.Is(err, ErrCountersDenied) {
		return nil, err
	}
	return nil, nil // older chips are known without it
}

// find finds the metrics that the chip has. Each is tried with a host's part of its own: what is added to one behind a metric that
// it has refused is not counted.
func (k *Counting) find(metrics []string, host func() (uintptr, error)) error {
	var refusal error
	for i, name := range metrics {
		h, err := host()
		if err != nil {
			return err
		}
		text := append([]byte(name), 0)
		err = k.add(h, []*byte{&text[0]})
		p := &cuptiHost{whole[cuptiHost](), h}
		if end := k.cupti.call(symHostDeinitialize, uintptr(unsafe.Pointer(p))); end != nil {
			return end
		}
		if err != nil {
			refusal = fmt.Errorf("metric %s: %w", name, err)
			continue
		}
		k.known, k.names = append(k.known, i), append(k.names, &text[0])
	}
	if len(k.known) == 0 {
		return refusal
	}
	return nil
}

// add adds metrics to a host's part.
func (k *Counting) add(host uintptr, names []*byte) error {
	p := &cuptiAddMetrics{cuptiHead: whole[cuptiAddMetrics](), host: host, names: &names[0], count: uintptr(len(names))}
	return k.cupti.call(symAddMetrics, uintptr(unsafe.Pointer(p)))
}

// configure makes the image that says what to count in which pass.
func (k *Counting) configure() error {
	size := &cuptiConfigSize{cuptiHead: whole[cuptiConfigSize](), host: k.host}
	if err := k.cupti.call(symConfigSize, uintptr(unsafe.Pointer(size))); err != nil {
		return err
	}
	k.config = image(size.bytes)
	p := &cuptiConfig{cuptiHead: whole[cuptiConfig](), host: k.host, bytes: size.bytes, image: first(k.config)}
	return k.cupti.call(symConfig, uintptr(unsafe.Pointer(p)))
}

// enable makes the profiler of the context, with room for what is counted.
func (k *Counting) enable() error {
	on := &cuptiEnable{cuptiHead: whole[cuptiEnable](), context: k.context.handle}
	if err := k.cupti.call(symRangeEnable, uintptr(unsafe.Pointer(on))); err != nil {
		return err
	}
	k.profiler = on.profiler
	size := &cuptiDataSize{cuptiHead: whole[cuptiDataSize](), profiler: k.profiler, names: &k.names[0], count: uintptr(len(k.names)),
		ranges: uintptr(k.ranges), nodes: uint32(k.ranges)}
	if err := k.cupti.call(symRangeDataSize, uintptr(unsafe.Pointer(size))); err != nil {
		return err
	}
	k.data = image(size.bytes)
	begin := &cuptiDataInitialize{whole[cuptiDataInitialize](), k.profiler, size.bytes, first(k.data)}
	if err := k.cupti.call(symRangeDataInitialize, uintptr(unsafe.Pointer(begin))); err != nil {
		return err
	}
	set := newSetConfig()
	set.profiler, set.ranges, set.replay, set.most = k.profiler, cuptiUserRange, cuptiUserReplay, uintptr(k.ranges)
	set.config, set.configBytes = first(k.config), uintptr(len(k.config))
	set.data, set.dataBytes = first(k.data), uintptr(len(k.data))
	set.levels, set.least, set.target = 1, 1, 1 // ranges have no ranges inside
	return k.cupti.call(symRangeSetConfig, uintptr(unsafe.Pointer(&set)))
}

// Pass counts while run runs, which calls Range for every range, in the same order in every pass. done is
// true when no more passes are needed. run may not use another context.
func (k *Counting) Pass(run func() error) (done bool, err error) {
	err = k.context.Do(func() error {
		if err := k.onProfiler(symRangeStart); err != nil {
			return err
		}
		ran := run()
		stop := newStop()
		stop.profiler = k.profiler
		err := k.cupti.call(symRangeStop, uintptr(unsafe.Pointer(&stop)))
		done = stop.last != 0
		return errors.Join(ran, err)
	})
	return done, err
}

// Range counts while run queues work and waits for it. i is the range's number, from 0.
func (k *Counting) Range(i int, run func() error) error {
	name := append([]byte(strconv.Itoa(i)), 0)
	push := &cuptiPush{whole[cuptiPush](), k.profiler, &name[0]}
	if err := k.cupti.call(symRangePush, uintptr(unsafe.Pointer(push))); err != nil {
		return err
	}
	return errors.Join(run(), k.onProfiler(symRangePop))
}

// onProfiler calls a function that takes the profiler and nothing else.
func (k *Counting) onProfiler(symbol int) error {
	p := &cuptiProfiler{whole[cuptiProfiler](), k.profiler}
	return k.cupti.call(symbol, uintptr(unsafe.Pointer(p)))
}

// Values are the values of the metrics in each range, when all passes are done: NaN for a metric that the chip does not have.
func (k *Counting) Values() (values [][]float64, err error) {
	err = k.context.Do(func() error {
		decode := &cuptiDecode{cuptiHead: whole[cuptiDecode](), profiler: k.profiler}
		if err := k.cupti.call(symRangeDecode, uintptr(unsafe.Pointer(decode))); err != nil {
			return err
		}
		if decode.dropped > 0 {
			return fmt.Errorf("CUPTI had no room for %d ranges", decode.dropped)
		}
		values = make([][]float64, k.ranges)
		for index := range k.ranges {
			if err := k.evaluate(index, values); err != nil {
				return err
			}
		}
		return nil
	})
	return values, err
}

// evaluate puts the values of the range at an index of the data where its name says.
func (k *Counting) evaluate(index int, values [][]float64) error {
	delimiter := []byte("/\x00")
	info := &cuptiRangeInfo{whole[cuptiRangeInfo](), first(k.data), uintptr(len(k.data)), uintptr(index), &delimiter[0], nil}
	if err := k.cupti.call(symRangeInfo, uintptr(unsafe.Pointer(info))); err != nil {
		return err
	}
	name := cString(info.name)
	at, err := strconv.Atoi(name)
	if err != nil || at < 0 || at >= len(values) || values[at] != nil {
		return fmt.Errorf("CUPTI counted in a range %q that is not one of the %d, or twice", name, len(values))
	}
	counted := make([]float64, len(k.names))
	p := &cuptiEvaluate{whole[cuptiEvaluate](), k.host, first(k.data), uintptr(len(k.data)), uintptr(index), &k.names[0],
		uintptr(len(k.names)), &counted[0]}
	if err := k.cupti.call(symEvaluate, uintptr(unsafe.Pointer(p))); err != nil {
		return err
	}
	values[at] = make([]float64, k.asked)
	for i := range values[at] {
		values[at][i] = math.NaN()
	}
	for i, metric := range k.known {
		values[at][metric] = counted[i]
	}
	return nil
}

// Close ends the counting. A second Close does nothing.
func (k *Counting) Close() error {
	profiler, host := k.profiler, k.host
	if profiler == 0 && host == 0 {
		return nil
	}
	return k.context.Do(func() error {
		var errs []error
		if profiler != 0 {
			errs = append(errs, k.onProfiler(symRangeDisable))
		}
		if host != 0 {
			p := &cuptiHost{whole[cuptiHost](), host}
			errs = append(errs, k.cupti.call(symHostDeinitialize, uintptr(unsafe.Pointer(p))))
		}
		k.profiler, k.host = 0, 0
		return errors.Join(errs...)
	})
}

// image is memory for one of CUPTI's images, which begin at multiples of 8.
func image(bytes uintptr) []byte { return aligned(int(bytes), 8) }

// first is the address of memory; nil for none.
func first(memory []byte) *byte { return unsafe.SliceData(memory) }
