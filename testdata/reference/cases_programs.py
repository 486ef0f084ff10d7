"""The language itself: operators, casts, index notation, static control flow."""

import math

import numpy as np
import scipy.ndimage
import scipy.special
import torch
import torch.nn.functional as F

from harness import SPECIAL, Cases, tensor

BF16 = torch.bfloat16


def all_cases():
    return [language(), scalars()]


def scalars():
    """Every scalar operation, on ordinary and special values."""
    c = Cases("scalars", 16)
    x = torch.cat([c.data.normal(12, scale=2), torch.tensor(SPECIAL, dtype=torch.float64)])
    n = x.numpy()
    with np.errstate(all="ignore"):
        one = {
            "abs": np.abs(n),
            "sign": np.sign(n),
            "floor": np.floor(n),
            "ceil": np.ceil(n),
            "round": np.round(n),
            "trunc": np.trunc(n),
            "exp": np.exp(n),
            "exp2": np.exp2(n),
            "expm1": np.expm1(n),
            "log": np.log(n),
            "log2": np.log2(n),
            "log10": np.log10(n),
            "log1p": np.log1p(n),
            "sqrt": np.sqrt(n),
            "rsqrt": 1 / np.sqrt(n),
            "recip": 1 / n,
            "erf": scipy.special.erf(n),
            "erfc": scipy.special.erfc(n),
            "sin": np.sin(n),
            "cos": np.cos(n),
            "tan": np.tan(n),
            "asin": np.arcsin(n),
            "acos": np.arccos(n),
            "atan": np.arctan(n),
            "sinh": np.sinh(n),
            "cosh": np.cosh(n),
            "tanh": np.tanh(n),
            "asinh": np.arcsinh(n),
            "acosh": np.arccosh(n),
            "atanh": np.arctanh(n),
            "isnan": np.isnan(n),
            "isinf": np.isinf(n),
            "isfinite": np.isfinite(n),
            "neg": -n,
        }
        for name, y in one.items():
            c.add(name, f"{name}(x)", {"x": x}, y, tol=1e-13)
        a, b = (
            v.reshape(-1)
            for v in np.meshgrid(
                np.array(SPECIAL + [2.0, 2.5]),
                np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.5, -2.0, 3.0]),
            )
        )
        two = {
            "a + b": a + b,
            "a - b": a - b,
            "a * b": a * b,
            "a / b": a / b,
            "a ** b": np.power(a, b),
            "min(a, b)": np.minimum(a, b),
            "max(a, b)": np.maximum(a, b),
            "atan2(a, b)": np.arctan2(a, b),
            "a < b": a < b,
            "a <= b": a <= b,
            "a > b": a > b,
            "a >= b": a >= b,
            "a == b": a == b,
            "a != b": a != b,
            "where(a < b, a, b)": np.where(a < b, a, b),
        }
        for text, y in two.items():
            c.add(text, text, {"a": a, "b": b}, y, tol=1e-13)
        finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
        c.add("a % b", "a % b", {"a": a[finite], "b": b[finite]}, np.mod(a[finite], b[finite]))
    i, j = (
        v.reshape(-1).astype(np.int64) for v in np.meshgrid(np.arange(-7, 8, 3), np.array([-3, -1, 1, 2, 5]))
    )
    for text, y in {
        "a + b": i + j,
        "a - b": i - j,
        "a * b": i * j,
        "a / b": i // j,
        "a % b": i % j,
        "min(a, b)": np.minimum(i, j),
        "abs(a)": np.abs(i),
        "sign(a)": np.sign(i),
        "a & b": i & j,
        "a | b": i | j,
        "a ^ b": i ^ j,
        "a << abs(b)": i << np.abs(j),
        "a >> abs(b)": i >> np.abs(j),
        "bitnot(a)": ~i,
        "a < b": i < j,
        "a == b": i == j,
        "a ** abs(b)": i ** np.abs(j),
    }.items():
        c.add(
            f"integers: {text}",
            text,
            {"a": i, "b": j} if "b" in text.replace("abs", "").replace("bit", "") else {"a": i},
            y,
        )
    for name in ("i8", "u8", "i16", "i32"):
        t = tensor(np.array([100, 127, 3, 5]), name)
        c.add(f"{name} wraps", "x * x + x", {"x": t}, t * t + t)
        whole = tensor(
            np.array([3.7, -3.7, 100.2, 0.0]) if name != "u8" else np.array([3.7, 100.2, 0.0, 254.9])
        )
        c.add(f"cast to {name}", f"{name}(x)", {"x": whole}, whole.to(t.dtype))
    p, q = c.data.bools(9), c.data.bools(9)
    for text, y in {"p && q": p & q, "p || q": p | q, "!p": ~p, "p == q": p == q, "p != q": p != q}.items():
        c.add(text, text, {"p": p, "q": q} if "q" in text else {"p": p}, y)
    c.add("sum of bools", "sum(p)", {"p": p}, p.sum())
    z = c.data.normal(40, scale=100)
    for name, dtype in (("f16", torch.float16), ("bf16", BF16), ("f32", torch.float32)):
        ends = torch.cat(
            [
                z,
                torch.tensor(
                    [65519.0, 65520.0, 1e-8, 6e-8, 3.3895e38, 1e39, 1.00390625, 1.01171875],
                    dtype=torch.float64,
                ),
            ]
        )
        c.add(f"cast to {name}", f"{name}(x)", {"x": ends}, ends.to(dtype), tol=0)
    return c


def language():
    c = Cases("language", 17)
    x, y = c.data.normal(4, 6), c.data.normal(6)
    col = c.data.normal(4, 1)
    both = {"x": x, "y": y}
    c.add("broadcast", "x * y + c", {**both, "c": col}, x * y + col)
    c.add("precedence", "-x ** 2 * 3 + y % 2 - 1", both, -(x**2) * 3 + torch.remainder(y, 2) - 1)
    c.add("power binds to the right", "y ** 2 ** 3", {"y": y}, y**8)
    c.add("keep", "x - max(x, axis=-1, keep=true)", {"x": x}, x - x.max(-1, keepdim=True)[0])
    c.add(
        "promotion",
        "a + b",
        {"a": x.to(BF16), "b": x.to(torch.float16)},
        (x.to(BF16).double() + x.to(torch.float16).double()).float(),
        tol=1e-6,
    )
    c.add(
        "integer beside float",
        "x * n",
        {"x": x.float(), "n": torch.arange(6)},
        x.float() * torch.arange(6),
        tol=1e-6,
    )
    c.add(
        "comparison chain by and",
        "where(0 < x && x <= 1, x, 0)",
        {"x": x},
        torch.where((0 < x) & (x <= 1), x, torch.zeros(()).double()),
    )
    c.add(
        "function",
        "twice(x) + twice(x, by=3.0)",
        {"x": x},
        x * 5,
        header="fn twice(x: T[...], by: float = 2.0) -> T[...] = x * by\n\n",
    )
    c.add(
        "function of functions",
        "f(g(x))",
        {"x": x},
        torch.exp(x * 2) + 1,
        header="fn g(x: T[...]) -> T[...] = x * 2\n\nfn f(x: T[...]) -> T[...] {\n    y = exp(x)\n    return y + 1\n}\n\n",
    )
    c.add(
        "leading dims",
        "rows(x)",
        {"x": x.reshape(2, 2, 6)},
        x.reshape(2, 2, 6).sum(-1) / 6,
        header="fn rows(x: T[...B, N]) -> T[...B] = sum(x, axis=-1) / N\n\n",
    )
    c.add(
        "optional tensor",
        "f(x) + f(x, y)",
        both,
        x + x * y,
        header="fn f(x: T[...], w: T[N] = none) -> T[...] {\n    y = x\n    if w != none {\n        y = x * w\n    }\n    return y\n}\n\n",
    )
    c.add("static for", "p = x\nfor k in 0..5 {\n    p = p * x + k\n}\nout = p", {"x": x}, {"out": horner(x)})
    c.add(
        "static if",
        'f(x, mode="a") + f(x, mode="b")',
        {"x": x},
        x + x * x,
        header='fn f(x: T[...], mode: string) -> T[...] {\n    if mode == "a" {\n        y = x\n    } else {\n        y = x * x\n    }\n    return y\n}\n\n',
    )
    c.add("const", "x * HALF", {"x": x}, x * 0.5, header="const TWO = 2\nconst HALF = 1 / (TWO * 1.0)\n\n")
    c.add("several outputs", "m = mean(x)\ns = x - m", {"x": x}, {"m": x.mean(), "s": x - x.mean()})
    c.add(
        "several results",
        "m, v = mean_var(x)",
        {"x": x},
        {"m": x.mean(-1), "v": x.var(-1, unbiased=False)},
        header="fn mean_var(x: T[..., N]) -> (T[...], T[...]) {\n    m = mean(x, axis=-1)\n    d = x - m[..., none]\n    return m, mean(d * d, axis=-1)\n}\n\n",
    )
    n = x.numpy()
    index = {
        "stencil": (
            "out[i, j] = x[i, j] - (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4",
            n - scipy.ndimage.convolve(n, np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), mode="constant") / 4,
        ),
        "transpose": ("out[j, i] = x[i, j]", n.T),
        "matvec": ("out[i] = sum[j] x[i, j] * y[j]", n @ y.numpy()),
        "gram": ("out[i, j] = sum[k] x[i, k] * x[j, k]", n @ n.T),
        "prefix sum": ("out[i, j] = sum[k: 6 where k <= j] x[i, k]", np.cumsum(n, axis=1)),
        "fill": (
            "out[i: 4, j: 6] = x[i, j + 1] else -1",
            np.concatenate([n[:, 1:], np.full((4, 1), -1.0)], axis=1),
        ),
        "max with a fill": (
            "out[i: 4, j: 6] = max[k: 3] x[i, j + k - 1] else -inf",
            scipy.ndimage.maximum_filter1d(n, 3, axis=1, mode="constant", cval=-np.inf),
        ),
        "range values": ("out[i: 4, j: 6] = x[i, j] * f64(i * 6 + j)", n * np.arange(24).reshape(4, 6)),
        "triangle": ("out[i: 4, j: 6] = where(j <= i, x[i, j], 0)", np.tril(n)),
        "function of a scalar": ("out[i, j] = gelu(x[i, j])", F.gelu(x)),
        "function of a row": ("out[i: 4, j: 6] = softmax(x[i, :])[j]", F.softmax(x, -1)),
        "argmax of a row": ("out[i] = f64(argmax[j] x[i, j])", n.argmax(1).astype(np.float64)),
        "two reductions": (
            "out[i] = (sum[j] x[i, j]) / (1 + max[j] abs(x[i, j]))",
            n.sum(1) / (1 + np.abs(n).max(1)),
        ),
        "strided": ("out[i: 4, j: 3] = x[i, 2 * j + 1]", n[:, 1::2]),
        "reversed": ("out[i: 4, j: 6] = x[i, 5 - j]", n[:, ::-1].copy()),
        "modulo": ("out[i: 4, j: 6] = x[i, (j + 2) % 6]", np.roll(n, -2, axis=1)),
        "division": ("out[i: 4, j: 12] = x[i, j / 2]", np.repeat(n, 2, axis=1)),
        "empty predicate": ("out[i: 4] = sum[k: 6 where k < 0] x[i, k]", np.zeros(4)),
    }
    for name, (body, want) in index.items():
        uses = {"x": x, "y": y} if "y[" in body else {"x": x}
        c.add("index notation: " + name, body, uses, {"out": want})
    at = c.data.ints(4, lo=0, hi=6)
    c.add(
        "index notation: gather",
        "out[i] = x[i, at[i]]",
        {"x": x, "at": at},
        {"out": n[np.arange(4), at.numpy()]},
    )
    c.add(
        "index notation: gather outside",
        "out[i] = x[i, at[i]]",
        {"x": x, "at": at + 4},
        {"out": np.where(at.numpy() + 4 < 6, n[np.arange(4), np.minimum(at.numpy() + 4, 5)], 0)},
    )
    c.add("symbols in expressions", "x * N + M", {"x": x}, x * 4 + 6, dims={"x": "N, M", "result": "N, M"})
    at_n = torch.arange(4) * 3
    c.add(
        "symbols beside an integer tensor",
        "x * (N + 1) / 2 + iota(N) * N - min(x, N)",
        {"x": at_n},
        at_n * 5 // 2 + torch.arange(4) * 4 - at_n.clamp(max=4),
        dims={"x": "N", "result": "N"},
    )
    c.add(
        "linear dims",
        "sum(reshape(x, K, 2), axis=1)",
        {"x": y},
        y.reshape(3, 2).sum(1),
        dims={"x": "2 * K", "result": "K"},
    )
    c.add(
        "computed result dims",
        "x[:, ::2]",
        {"x": x},
        x[:, ::2],
        dims={"x": "N, M", "result": "N, (M + 1) / 2"},
    )
    c.add(
        "blur across a reduction of a reduction",
        "m[i] = mean(x[i, :])\nout[i] = sum[k: 3] m[i + k - 1] / 3",
        {"x": x},
        {"out": scipy.ndimage.uniform_filter1d(n.mean(1), 3, mode="constant")},
    )
    c.add(
        "several reductions over one axis",
        "e = exp(x - max(x, axis=-1, keep=true))\nout = sum(e * x, axis=-1) / sum(e, axis=-1)",
        {"x": x},
        {"out": (F.softmax(x, -1) * x).sum(-1)},
    )
    return c


def horner(x):
    p = x
    for k in range(5):
        p = p * x + k
    return p
