package cuda

import "unsafe"

// The parameters of CUPTI's functions, as C lays them out (cupti_range_profiler.h, cupti_profiler_host.h,
// cupti_profiler_target.h and cupti_target.h of CUDA 12.6). Each begins with a head. size is what the
// caller knows of, up to the end of the last field: a newer library takes fields that it has beyond
// that as not given.

type cuptiHead struct {
	size uintptr
	priv uintptr // 0
}

// What cuptiProfilerHostInitialize and cuptiRangeProfilerSetConfig are told.
const (
	cuptiRangeProfiler = 0 // CUPTI_PROFILER_TYPE_RANGE_PROFILER
	cuptiUserRange     = 2 // CUPTI_UserRange: what is counted is between a push and a pop
	cuptiUserReplay    = 3 // CUPTI_UserReplay: the caller runs everything once for each pass
)

type cuptiInitialize struct{ cuptiHead }

type cuptiChipName struct {
	cuptiHead
	device uintptr
	name   *byte // out; CUPTI's own memory
}

type cuptiAvailability struct {
	cuptiHead
	context uintptr
	bytes   uintptr // in, and out where there is no image
	image   *byte
}

type cuptiHostInitialize struct {
	cuptiHead
	profiler     int32
	chip         *byte
	availability *byte   // may be nil
	host         uintptr // out
}

type cuptiHost struct {
	cuptiHead
	host uintptr
}

type cuptiAddMetrics struct {
	cuptiHead
	host  uintptr
	names **byte
	count uintptr
}

type cuptiConfigSize struct {
	cuptiHead
	host  uintptr
	bytes uintptr // out
}

type cuptiConfig struct {
	cuptiHead
	host  uintptr
	bytes uintptr
	image *byte
}

type cuptiEvaluate struct {
	cuptiHead
	host   uintptr
	data   *byte
	bytes  uintptr
	index  uintptr // of the range
	names  **byte
	count  uintptr
	values *float64
}

type cuptiEnable struct {
	cuptiHead
	context  uintptr
	profiler uintptr // out
}

// cuptiProfiler is of the functions that take a range profiler and nothing else.
type cuptiProfiler struct {
	cuptiHead
	profiler uintptr
}

type cuptiStop struct {
	cuptiHead
	profiler uintptr
	pass     uintptr // out
	level    uintptr // out
	last     uint8   // out: 1 where all passes are done
}

type cuptiPush struct {
	cuptiHead
	profiler uintptr
	name     *byte
}

type cuptiDecode struct {
	cuptiHead
	profiler uintptr
	dropped  uintptr // out: ranges for which there was no room
}

type cuptiDataSize struct {
	cuptiHead
	profiler uintptr
	names    **byte
	count    uintptr
	ranges   uintptr
	nodes    uint32
	bytes    uintptr // out
}

type cuptiDataInitialize struct {
	cuptiHead
	profiler uintptr
	bytes    uintptr
	data     *byte
}

type cuptiSetConfig struct {
	cuptiHead
	profiler    uintptr
	configBytes uintptr
	config      *byte
	dataBytes   uintptr
	data        *byte
	ranges      int32 // how they are defined
	replay      int32
	most        uintptr // ranges in a pass
	levels      uint16
	least       uint16 // level
	pass        uintptr
	target      uint16
}

type cuptiRangeInfo struct {
	cuptiHead
	data      *byte
	bytes     uintptr
	index     uintptr
	delimiter *byte
	name      *byte // out; CUPTI's own memory
}

// upTo is the size of a struct up to the end of a field, which is what CUPTI wants to be told:
// it may be less than the size of the struct.
func upTo(offset, size uintptr) cuptiHead { return cuptiHead{size: offset + size} }

// The sizes that follow from that, for the structs that end in padding; the others have their own.
func newStop() cuptiStop {
	var p cuptiStop
	p.cuptiHead = upTo(unsafe.Offsetof(p.last), unsafe.Sizeof(p.last))
	return p
}

func newSetConfig() cuptiSetConfig {
	var p cuptiSetConfig
	p.cuptiHead = upTo(unsafe.Offsetof(p.target), unsafe.Sizeof(p.target))
	return p
}

// whole is the head of a struct without padding at its end.
func whole[T any]() cuptiHead {
	var p T
	return cuptiHead{size: unsafe.Sizeof(p)}
}
