"""Activations and random numbers."""

import numpy as np
import torch
import torch.nn.functional as F

from harness import Cases, SPECIAL


def all_cases():
    return [activations(), random()]


def activations():
    c = Cases("activations", 1)
    x = c.data.normal(3, 7, scale=2)
    special = torch.tensor(SPECIAL, dtype=torch.float64)
    unary = {
        "relu(x)": F.relu,
        "relu6(x)": F.relu6,
        "leaky_relu(x)": F.leaky_relu,
        "leaky_relu(x, negative_slope=0.2)": lambda x: F.leaky_relu(x, 0.2),
        "elu(x)": F.elu,
        "elu(x, alpha=0.5)": lambda x: F.elu(x, 0.5),
        "selu(x)": F.selu,
        "celu(x)": F.celu,
        "celu(x, alpha=2.0)": lambda x: F.celu(x, 2.0),
        "gelu(x)": F.gelu,
        "gelu_tanh(x)": lambda x: F.gelu(x, approximate="tanh"),
        "sigmoid(x)": torch.sigmoid,
        "log_sigmoid(x)": F.logsigmoid,
        "silu(x)": F.silu,
        "swish(x)": F.silu,
        "swish(x, beta=1.7)": lambda x: x * torch.sigmoid(1.7 * x),
        "mish(x)": F.mish,
        "softplus(x)": F.softplus,
        "softplus(x, beta=2.0, threshold=5.0)": lambda x: F.softplus(x, 2.0, 5.0),
        "softsign(x)": F.softsign,
        "tanhshrink(x)": F.tanhshrink,
        "softshrink(x)": shrink_keeping_nan,
        "softshrink(x, lambd=1.0)": lambda x: shrink_keeping_nan(x, 1.0),
        "hardshrink(x)": F.hardshrink,
        "hardshrink(x, lambd=1.0)": lambda x: F.hardshrink(x, 1.0),
        "hardtanh(x)": F.hardtanh,
        "hardtanh(x, min_val=-0.5, max_val=2.0)": lambda x: F.hardtanh(x, -0.5, 2.0),
        "hardsigmoid(x)": F.hardsigmoid,
        "hardswish(x)": F.hardswish,
        "threshold(x, 0.1, 20.0)": lambda x: F.threshold(x, 0.1, 20.0),
        "clamp(x, lo=-1, hi=0.5)": lambda x: torch.clamp(x, -1, 0.5),
        "clamp(x, lo=0.25)": lambda x: torch.clamp(x, min=0.25),
        "square(x)": torch.square,
        "nan_to_num(x, 100.0, -50.0)": lambda x: torch.nan_to_num(x, 0.0, 100.0, -50.0),
    }
    for text, f in unary.items():
        c.add(text, text, {"x": x}, f(x))
        c.add(text + " of special values", text, {"x": special}, f(special))
    for text, f in {"gelu(x)": F.gelu, "silu(x)": F.silu, "mish(x)": F.mish, "selu(x)": F.selu}.items():
        for dtype, tol in ((torch.bfloat16, 2**-8), (torch.float16, 2**-11), (torch.float32, 2**-23)):
            narrow = x.to(dtype)
            y = f(narrow.to(torch.float64)).to(dtype)
            c.add(f"{text} of {dtype}", text, {"x": narrow}, y, tol=2 * tol)
    c.add("any rank: scalar", "gelu(x)", {"x": x[0, 0]}, F.gelu(x[0, 0]))
    c.add("any rank: empty", "gelu(x)", {"x": x[:, :0]}, F.gelu(x[:, :0]))
    c.add("any rank: four axes", "gelu(x)", {"x": x.reshape(1, 3, 1, 7)}, F.gelu(x).reshape(1, 3, 1, 7))
    c.add("relu of integers", "relu(x)", {"x": torch.tensor([-3, 0, 5])}, torch.tensor([0, 0, 5]))

    w = c.data.normal(3)
    c.add("prelu one slope", "prelu(x, w)", {"x": x, "w": w[:1]}, F.prelu(x, w[:1]))
    x3 = c.data.normal(2, 3, 5)
    c.add("prelu a slope for each channel", "prelu(x, w)", {"x": x3, "w": w}, F.prelu(x3, w))
    x4 = c.data.normal(2, 3, 2, 3)
    c.add("prelu of images", "prelu(x, w)", {"x": x4, "w": w}, F.prelu(x4, w))

    a, b = c.data.normal(4, 5), c.data.normal(4, 5)
    binary = {
        "lerp(a, b, 0.3)": torch.lerp(a, b, 0.3),
        "lerp(a, b, 0.8)": torch.lerp(a, b, 0.8),
        "swiglu(a, b)": F.silu(a) * b,
        "geglu(a, b)": F.gelu(a) * b,
        "reglu(a, b)": F.relu(a) * b,
        "logaddexp(a, b)": torch.logaddexp(a, b),
        "xlogy(a, abs(b))": torch.xlogy(a, b.abs()),
    }
    for text, y in binary.items():
        c.add(text, text, {"a": a, "b": b}, y)
    inf = float("inf")
    sa = torch.tensor([-inf, -inf, inf, inf, 0.0, float("nan"), 1000.0, 0.0, 0.0], dtype=torch.float64)
    sb = torch.tensor([-inf, 1.0, -inf, inf, -inf, 1.0, 1000.0, 0.0, float("nan")], dtype=torch.float64)
    c.add("logaddexp of special values", "logaddexp(a, b)", {"a": sa, "b": sb}, torch.logaddexp(sa, sb))
    c.add("xlogy of special values", "xlogy(a, b)", {"a": sa, "b": sb}, torch.xlogy(sa, sb))

    g = c.data.normal(4, 6, 2)
    c.add("glu", "glu(x, axis=1)", {"x": g}, F.glu(g, 1))
    c.add("glu of the last axis", "glu(x)", {"x": g}, F.glu(g, -1))
    p = c.data.uniform(5, 3)
    c.add("logit", "logit(p)", {"p": p}, torch.logit(p))
    ends = torch.tensor([0.0, 1.0, 0.5, 0.001], dtype=torch.float64)
    c.add("logit eps", "logit(p, eps=0.01)", {"p": ends}, torch.logit(ends, 0.01))
    c.add(
        "symbolic sizes",
        "gelu(x) + a",
        {"x": x, "a": x[0]},
        F.gelu(x) + x[0],
        dims={"x": "N, M", "a": "M", "result": "N, M"},
    )
    return c


def shrink_keeping_nan(x, lambd=0.5):
    """Newer PyTorch keeps NaN in softshrink; 1.13 gives 0."""
    return torch.where(torch.isnan(x), x, F.softshrink(x, lambd))


def philox_bits(seed, count):
    """The 32-bit words of Philox4x32-10, from the paper; word i is word i % 4 of block i // 4."""
    out = []
    for block in range((count + 3) // 4):
        c = [block & 0xFFFFFFFF, block >> 32, 0, 0]
        k = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        out += c
    return np.array(out[:count], dtype=np.uint64)


def philox_halves(seed, count):
    """The 16-bit halves of the same words, lower ones first."""
    words = philox_bits(seed, (count + 1) // 2)
    return np.stack([words & np.uint64(0xFFFF), words >> np.uint64(16)], axis=1).reshape(-1)[:count]


def uniform(seed, *shape):
    n = int(np.prod(shape))
    return (philox_bits(seed, n) >> np.uint64(8)).astype(np.float64).reshape(shape) * 2.0**-24


def random():
    c = Cases("random", 2)
    x = c.data.normal(3, 7)
    shape = tuple(x.shape)
    u = uniform(42, *shape)
    c.add(
        "random_bits",
        "i64(random_bits(42, x))",
        {"x": x},
        philox_bits(42, 21).astype(np.int64).reshape(shape),
    )
    c.add(
        "random_bits, seed given at run time",
        "i64(random_bits(s, x))",
        {"x": x, "s": torch.tensor(123456789012)},
        philox_bits(123456789012, 21).astype(np.int64).reshape(shape),
    )
    halves = philox_halves(42, 21).astype(np.int64).reshape(shape)
    c.add("random_bits16", "i64(random_bits16(42, x))", {"x": x}, halves)
    dropped = halves < round(0.3 * 65536)
    c.add("uniform_like", "uniform_like(x, 42)", {"x": x}, u, tol=1e-7)
    c.add("uniform_like lo hi", "uniform_like(x, 42, lo=-2, hi=3)", {"x": x}, -2 + 5 * u, tol=1e-6)
    half = x.to(torch.bfloat16)
    c.add(
        "uniform_like of bf16",
        "uniform_like(x, 42)",
        {"x": half},
        torch.from_numpy(u).to(torch.bfloat16),
        tol=2**-8,
    )
    v = uniform(42 ^ 0x5DEECE66D, *shape)
    z = np.sqrt(-2 * np.log(u + 2.0**-25)) * np.cos(2 * np.pi * v)
    c.add("normal_like", "normal_like(x, 42)", {"x": x}, z, tol=1e-5)
    c.add("normal_like mean std", "normal_like(x, 42, mean=3, std=0.5)", {"x": x}, 3 + 0.5 * z, tol=1e-5)
    c.add(
        "dropout",
        "dropout(x, 0.3, 42)",
        {"x": x},
        torch.where(torch.from_numpy(dropped), torch.zeros(()).double(), x / 0.7),
    )
    c.add("dropout of everything", "dropout(x, 1.0, 42)", {"x": x}, torch.zeros(shape).double())
    c.add("dropout of nothing", "dropout(x, 0.0, 42)", {"x": x}, x)
    p = c.data.uniform(3, 7)
    c.add("bernoulli", "bernoulli(p, 42)", {"p": p}, torch.from_numpy(u) < p.to(torch.float32).double())
    alpha = 1.7580993408473766
    a = (0.7 * (1 + 0.3 * alpha**2)) ** -0.5
    kept = np.where(dropped, -alpha, x.numpy())
    c.add("alpha_dropout", "alpha_dropout(x, 0.3, 42)", {"x": x}, a * kept + a * 0.3 * alpha)
    c.add(
        "exponential_like", "exponential_like(x, 42, rate=2)", {"x": x}, -np.log(u + 2.0**-25) / 2, tol=1e-6
    )
    return c
