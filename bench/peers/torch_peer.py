"""Runs benchmark cases in PyTorch, on request: the peer of `fusec bench --peer torch`.

It needs PyTorch and nothing else. Requests come on standard input and replies go to
standard output, one JSON object a line, in turn. A reply is {"error": TEXT} where a
request failed; the process lives on. Everything else that is printed goes to standard
error.

{"do": "hello"}
    -> {"name": "PyTorch 2.11", "device": "NVIDIA H200", "modes": ["eager", "channels-last", "compile", "max-autotune"]}
{"do": "load", "code": EXPRESSION or the lines of a function, "sizes": {"N": 8192},
 "f32": "exact" | "tf32" | "default",
 "inputs":  [{"name": "x", "dtype": "bf16", "shape": [8192, 64], "file": PATH}],
 "outputs": [{"name": "y", "dtype": "bf16", "shape": [8192, 64]}]}
    -> {}       the tensors are read, contiguous and row-major, in the machine's byte order. f32 says how numbers of
            that type are multiplied
{"do": "prepare", "mode": "eager" | "channels-last" | "compile" | "max-autotune", "files": [PATH]}
    -> {}       runs once, and writes the outputs. channels-last is eager on inputs that lie so before
            the time is taken, with the fastest of cuDNN's algorithms, which cuDNN measures
{"do": "time", "mode": MODE, "warmup": 2, "repeat": 10, "wall": false}
    -> {"ms": [0.1, ...], "memory": BYTES}      of each run, on the GPU's clock, with a cold L2 cache;
            with "wall", on the host's clock, from the call until the GPU is done. memory is the most
            that the GPU held at one time; where it is not known, it is left out
{"do": "unload"}
    -> {}
"""

import ctypes
import json
import linecache
import math
import os
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
    "bool": torch.bool,
}
MODES = {"compile": "default", "max-autotune": "max-autotune-no-cudagraphs"}  # of torch.compile
F32 = {"exact": (False, False), "tf32": (True, True), "default": (False, True)}  # tf32 in products, in convolutions
LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}  # by dimensions
FLUSH_BYTES = 512 << 20  # several times the L2 cache of any GPU
LEAD_CYCLES = 1_000_000  # about half a millisecond, in which the host queues the run


# What autograd calls for the backward of rms_norm, where this PyTorch has it.
RMS_NORM_BACKWARD = getattr(torch.ops.aten, "_fused_rms_norm_backward", None)


def layer_norm_backward(dy, x, weight, mean, rstd):
    stats = (mean[:, None], rstd[:, None])
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, [x.shape[-1]], *stats, weight, weight, [True, True, True])


def rms_norm_backward(dy, x, weight, rstd):
    if RMS_NORM_BACKWARD is not None:
        return RMS_NORM_BACKWARD(dy, x, [x.shape[-1]], rstd[:, None], weight, [True, True])
    g = dy.float() * weight.float()
    h = x.float() * rstd[:, None]
    dx = (g - h * (g * h).mean(-1, keepdim=True)) * rstd[:, None]
    return dx.to(x.dtype), (dy.float() * h).sum(0).to(x.dtype)


def cross_entropy_backward(x, target):
    p = torch.softmax(x.float(), dim=-1)
    classes = torch.arange(x.shape[1], device=x.device)
    return (torch.where(target[:, None] == classes, p - 1, p) / x.shape[0]).to(x.dtype)


NAMES = {"torch": torch, "F": F, "math": math, "layer_norm_backward": layer_norm_backward,
         "rms_norm_backward": rms_norm_backward, "cross_entropy_backward": cross_entropy_backward}


def function(code, names, sizes):
    """The expression as a function of the inputs. torch.compile looks for its source."""
    body = code if "\n" in code else f"return {code}"
    text = f"def case({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    file = "<case>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = dict(NAMES, **sizes)
    exec(compile(text, file, "exec"), scope)
    return scope["case"]


def raw(file, elements, size, shared):
    """The bytes of a file, as a tensor."""
    return torch.from_file(file, shared=shared, size=elements * size, dtype=torch.uint8)


def read(spec, device):
    dtype, shape = DTYPES[spec["dtype"]], spec["shape"]
    elements = math.prod(shape)
    if elements == 0:
        return torch.empty(shape, dtype=dtype, device=device)
    size = torch.empty((), dtype=dtype).element_size()
    return raw(spec["file"], elements, size, False).view(dtype).reshape(shape).to(device, copy=True)


def write(spec, value, file):
    dtype = DTYPES[spec["dtype"]]
    if list(value.shape) != spec["shape"]:
        raise ValueError(f"output {spec['name']}: expected shape {spec['shape']}, found {list(value.shape)}")
    value = value.to(dtype).contiguous().cpu()
    if value.numel() == 0:
        open(file, "wb").close()
        return
    size = value.element_size()
    raw(file, value.numel(), size, True).copy_(value.reshape(-1).view(torch.uint8))


class Peer:
    def __init__(self):
        self.cuda = torch.cuda.is_available()
        self.device = "cuda" if self.cuda else "cpu"
        self.flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda") if self.cuda else None
        # Lines that kernels ask the L2 cache to keep (evict_last) outlive its being overwritten.
        self.driver = ctypes.CDLL("libcuda.so.1") if self.cuda else None
        self.unload({})

    def hello(self, _):
        device = torch.cuda.get_device_name() if self.cuda else "CPU"
        modes = ["eager", "channels-last"] + (list(MODES) if hasattr(torch, "compile") else [])
        return {"name": f"PyTorch {torch.__version__}", "device": device, "modes": modes}

    def load(self, r):
        self.unload({})
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = F32[r["f32"]]
        self.inputs = [read(spec, self.device) for spec in r["inputs"]]
        self.outputs = r["outputs"]
        self.function = function(r["code"], [spec["name"] for spec in r["inputs"]], r["sizes"])
        return {}

    def unload(self, _):
        self.inputs, self.outputs, self.function, self.ready, self.moved = [], [], None, {}, {}
        if hasattr(torch, "_dynamo"):
            torch._dynamo.reset()
        if self.cuda:
            torch.cuda.empty_cache()
        return {}

    def prepare(self, r):
        run = self.function
        if r["mode"] in MODES:
            run = torch.compile(run, mode=MODES[r["mode"]], dynamic=False)
        inputs = self.arranged(r["mode"])
        with torch.no_grad():
            values = run(*inputs)
        values = list(values) if isinstance(values, (tuple, list)) else [values]
        values = values[:len(self.outputs)]
        if len(values) < len(self.outputs):
            raise ValueError(f"expected {len(self.outputs)} results, found {len(values)}")
        for spec, value, file in zip(self.outputs, values, r["files"]):
            write(spec, value, file)
        self.ready[r["mode"]] = run
        return {}

    def arranged(self, mode):
        """The inputs as a mode wants them."""
        torch.backends.cudnn.benchmark = mode == "channels-last"
        if mode != "channels-last":
            return self.inputs
        if mode not in self.moved:
            self.moved[mode] = [x.contiguous(memory_format=LAYOUTS.get(x.dim(), torch.contiguous_format))
                                for x in self.inputs]
        return self.moved[mode]

    def time(self, r):
        run, inputs = self.ready[r["mode"]], self.arranged(r["mode"])
        measure = self.time_cuda if self.cuda and not r.get("wall") else self.time_host
        with torch.no_grad():
            if self.cuda:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            for _ in range(r["warmup"]):
                run(*inputs)
            reply = {"ms": measure(run, inputs, r["repeat"])}
        if self.cuda:
            reply["memory"] = torch.cuda.max_memory_allocated() - FLUSH_BYTES
        return reply

    def time_cuda(self, run, inputs, repeat):
        events = []
        for _ in range(repeat):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.driver.cuCtxResetPersistingL2Cache()
            torch.cuda._sleep(LEAD_CYCLES)
            self.flush.zero_()  # right before the run, as fusec does: memory is still writing
            start.record()
            run(*inputs)
            end.record()
            events.append((start, end))
            end.synchronize()
        return [start.elapsed_time(end) for start, end in events]

    def time_host(self, run, inputs, repeat):
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            run(*inputs)
            if self.cuda:
                torch.cuda.synchronize()
            times.append((time.perf_counter() - start) * 1e3)
        return times


def main():
    # Libraries print where they like; standard output is the protocol's alone.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = Peer()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(peer, request["do"])(request)
        except Exception as e:
            reply = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
