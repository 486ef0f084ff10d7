"""Prints what one run costs its caller in PyTorch, microseconds with the wait for the device: the
peer of BenchmarkGPULatency. Modes: eager, torch.compile, and that with CUDA graphs."""

import statistics
import time

import torch
import torch.nn.functional as F


def add(x, w, r):
    return x + w


def softmax(x, w, r):
    return torch.softmax(x, -1)


def layers(x, w, r):
    for _ in range(30):
        x = torch.softmax(F.gelu(x @ w) + r, -1)
    return x


def median(run, repeat=500):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times[repeat // 5 :])


args = [torch.randn(256, 256, device="cuda") for _ in range(3)]
with torch.no_grad():
    for graph in add, softmax, layers:
        modes = {
            "eager": graph,
            "compile": torch.compile(graph),
            "reduce-overhead": torch.compile(graph, mode="reduce-overhead"),
        }
        row = []
        for name, run in modes.items():
            for _ in range(5):
                run(*args)
            torch.cuda.synchronize()
            row.append(f"{name} {median(lambda: run(*args)):.1f}")
        print(f"torch {graph.__name__}: " + ", ".join(row), flush=True)
