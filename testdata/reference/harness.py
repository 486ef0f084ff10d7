"""Cases of the reference files: a .fuse program, its inputs, and what they must give.

A case never asks fusec for anything: the expected numbers come from PyTorch, NumPy and SciPy in float64, or
from a few lines of NumPy where none of them has the function.
"""

import json
import math

import numpy as np
import torch

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}
NAMES = {t: n for n, t in DTYPES.items()}

SPECIAL = [
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1.0,
    -1.0,
    1e-30,
    -1e-30,
    30.0,
    -30.0,
    200.0,
    -200.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
]


def tensor(a, dtype=None):
    """tensor makes a float64 (or the given) tensor of anything array-like."""
    if isinstance(a, torch.Tensor):
        return a if dtype is None else a.to(DTYPES[dtype])
    t = torch.as_tensor(np.asarray(a))
    return t if dtype is None else t.to(DTYPES[dtype])


class Data:
    """Data draws inputs: reproducible, short in text."""

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def normal(self, *shape, scale=1.0):
        return torch.as_tensor(np.round(self.rng.normal(size=shape) * scale, 3))

    def uniform(self, *shape, lo=0.0, hi=1.0):
        return torch.from_numpy(np.round(self.rng.uniform(lo, hi, size=shape), 3))

    def ints(self, *shape, lo=0, hi=10):
        return torch.from_numpy(self.rng.randint(lo, hi, size=shape).astype(np.int64))

    def bools(self, *shape, p=0.5):
        return torch.from_numpy(self.rng.uniform(size=shape) < p)


class Cases:
    """Cases collects the cases of one library file."""

    def __init__(self, name, seed):
        self.name, self.data, self.cases = name, Data(seed), []

    def add(self, name, body, inputs, outputs, tol=1e-12, header="", dims=None):
        """add states that body, over the named inputs, binds the named outputs.

        body is an expression for the only output or statements; header stands before the graph; dims
        gives the shapes of some inputs and outputs as text (symbols).
        """
        inputs = {k: tensor(v) for k, v in inputs.items()}
        if not isinstance(outputs, dict):
            outputs = {"result": outputs}
            body = "result = " + body
        outputs = {k: tensor(v) for k, v in outputs.items()}
        params = ", ".join(self.declare(k, v, dims) for k, v in inputs.items())
        results = ", ".join(self.declare(k, v, dims) for k, v in outputs.items())
        lines = "".join("    " + line + "\n" for line in body.split("\n"))
        program = f"{header}graph g({params}) -> ({results}) {{\n{lines}}}\n"
        self.cases.append(
            {"name": name, "program": program, "tol": tol, "inputs": inputs, "outputs": outputs}
        )

    @staticmethod
    def declare(name, value, dims):
        shape = (dims or {}).get(name) or ", ".join(str(n) for n in value.shape)
        return f"{name}: {NAMES[value.dtype]}[{shape}]"

    def write(self, folder):
        names = [c["name"] for c in self.cases]
        assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
        with open(f"{folder}/{self.name}.json", "w", encoding="ascii") as f:
            f.write("[\n")
            f.write(",\n".join(self.text(c) for c in self.cases))
            f.write("\n]\n")

    def text(self, c):
        lines = [f"  {json.dumps(k)}: {json.dumps(c[k])}" for k in ("name", "program", "tol")]
        for part in ("inputs", "outputs"):
            rows = ",\n".join("    " + stored(k, v) for k, v in c[part].items())
            lines.append(f'  "{part}": [\n{rows}\n  ]' if rows else f'  "{part}": []')
        return " {\n" + ",\n".join(lines) + "\n }"


def stored(name, value):
    """stored is one tensor as a line of JSON; special floats are strings."""
    flat = value.reshape(-1)
    if value.dtype.is_floating_point:
        data = [number(x) for x in flat.to(torch.float64).tolist()]
    else:
        data = [str(int(x)) for x in flat.tolist()]
    shape = json.dumps(list(value.shape))
    return (
        f'{{"name": "{name}", "dtype": "{NAMES[value.dtype]}", '
        f'"shape": {shape}, "data": [{", ".join(data)}]}}'
    )


def number(x):
    if math.isnan(x):
        return '"NaN"'
    if math.isinf(x):
        return '"Inf"' if x > 0 else '"-Inf"'
    return repr(x).removesuffix(".0") if x != 0 or math.copysign(1, x) > 0 else "-0.0"
