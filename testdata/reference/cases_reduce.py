"""Reductions, softmax, norms, scans and sorting."""

import numpy as np
import scipy.integrate
import torch
import torch.nn.functional as F

from harness import Cases

INF, NAN = float("inf"), float("nan")


def all_cases():
    return [reduce(), softmax(), norm(), scan(), sort()]


def with_specials(x):
    """with_specials puts NaN and infinities into the first rows of a matrix."""
    x = x.clone()
    x[0, 1], x[1, 2], x[2, 0] = NAN, INF, -INF
    return x


def reduce():
    c = Cases("reduce", 3)
    x = c.data.normal(3, 5, 4)
    names = {
        "sum": torch.sum,
        "mean": torch.mean,
        "l1_norm": lambda t, **k: torch.linalg.vector_norm(t, 1, **k),
        "l2_norm": lambda t, **k: torch.linalg.vector_norm(t, 2, **k),
        "linf_norm": lambda t, **k: torch.linalg.vector_norm(t, INF, **k),
        "amax": torch.amax,
        "amin": torch.amin,
        "max": torch.amax,
        "min": torch.amin,
    }
    for name, f in names.items():
        for axis in (0, 1, -1, (0, 2), (1, -1), (0, 1, 2)):
            for keep in (False, True):
                if keep and axis not in (1, (0, 2)):
                    continue
                text = f"{name}(x, axis={axis}{', keep=true' if keep else ''})"
                c.add(text, text, {"x": x}, f(x, dim=axis, keepdim=keep))
        everything = (
            torch.max(x) if name in ("max", "amax") else torch.min(x) if name in ("min", "amin") else f(x)
        )
        c.add(f"{name}(x)", f"{name}(x)", {"x": x}, everything)
        m = with_specials(x[0])
        c.add(f"{name} of special values", f"{name}(x, axis=-1)", {"x": m}, f(m, dim=-1))
    for name in ("var", "std"):
        f = getattr(torch, name)
        for axis in (0, -1, (0, 2)):
            for correction in (0, 1):
                text = f"{name}(x, axis={axis}, correction={correction})"
                c.add(text, text, {"x": x}, f(x, dim=axis, correction=correction))
        c.add(f"{name}(x)", f"{name}(x)", {"x": x}, f(x))
        c.add(f"{name} keep", f"{name}(x, axis=1, keep=true)", {"x": x}, f(x, dim=1, keepdim=True))
        c.add(f"{name} of one element", f"{name}(x, axis=0)", {"x": x[:1]}, f(x[:1], dim=0))
        shifted = x + 1e6
        c.add(f"{name} far from 0", f"{name}(x, axis=-1)", {"x": shifted}, f(shifted, dim=-1), tol=1e-9)
    c.add("var_mean", "v, m = var_mean(x, axis=1)", {"x": x}, dict(zip("vm", torch.var_mean(x, dim=1))))
    c.add(
        "moments",
        "m, v = moments(x, axis=(1, 2))",
        {"x": x},
        {"m": x.mean(dim=(1, 2), keepdim=True), "v": x.var(dim=(1, 2), unbiased=False, keepdim=True)},
    )
    for p in (2.0, 1.0, 3.0, 0.5, 0.0):
        c.add(f"norm p={p}", f"norm(x, p={p}, axis=1)", {"x": x}, torch.linalg.vector_norm(x, p, dim=1))
    c.add("norm p=inf", "norm(x, p=inf, axis=1)", {"x": x}, torch.linalg.vector_norm(x, INF, dim=1))
    c.add("norm p=-inf", "norm(x, p=-inf, axis=1)", {"x": x}, torch.linalg.vector_norm(x, -INF, dim=1))
    c.add("norm of all", "norm(x)", {"x": x}, torch.linalg.vector_norm(x))
    c.add("frobenius_norm", "frobenius_norm(x)", {"x": x}, torch.linalg.matrix_norm(x))
    z = c.data.ints(4, 6, lo=-1, hi=2)
    c.add("count_nonzero", "count_nonzero(x, axis=1)", {"x": z}, torch.count_nonzero(z, dim=1))
    c.add("count_nonzero of all", "count_nonzero(x)", {"x": z}, torch.count_nonzero(z))
    c.add("trace", "trace(x)", {"x": x[:, :4]}, torch.stack([torch.trace(m) for m in x[:, :4]]))
    b = z == 0
    c.add("any", "any(x, axis=1)", {"x": b}, b.any(dim=1))
    c.add("all", "all(x, axis=0)", {"x": b}, b.all(dim=0))
    c.add("prod", "prod(x, axis=1)", {"x": x}, x.prod(dim=1))
    c.add("sum of integers", "sum(x, axis=0)", {"x": z.to(torch.int8)}, z.sum(dim=0))
    c.add("prod of integers", "prod(x + 2, axis=1)", {"x": z}, (z + 2).prod(dim=1))
    for name in ("argmax", "argmin"):
        f = getattr(torch, name)
        c.add(name, f"{name}(x, axis=1)", {"x": x}, f(x, dim=1))
        c.add(
            f"{name} ties",
            f"{name}(x, axis=1)",
            {"x": z},
            torch.from_numpy(getattr(np, name)(z.numpy(), axis=1)),
        )
        m = with_specials(x[0])
        c.add(
            f"{name} of special values",
            f"{name}(x, axis=-1)",
            {"x": m},
            torch.from_numpy(getattr(np, name)(m.numpy(), axis=-1)),
        )
    empty = torch.zeros(3, 0).double()
    c.add("sum of nothing", "sum(x, axis=1)", {"x": empty}, empty.sum(dim=1))
    c.add("prod of nothing", "prod(x, axis=1)", {"x": empty}, empty.prod(dim=1))
    c.add("mean of nothing", "mean(x, axis=1)", {"x": empty}, empty.mean(dim=1))
    c.add("no rows", "mean(x, axis=1)", {"x": torch.zeros(0, 3).double()}, torch.zeros(0).double())
    c.add("scalar", "mean(x)", {"x": x[0, 0, 0]}, x[0, 0, 0])
    for dtype, tol in ((torch.bfloat16, 2**-7), (torch.float16, 2**-10), (torch.float32, 2**-22)):
        narrow = x.to(dtype)
        wide = narrow.double()
        for name in ("mean", "std", "l2_norm"):
            y = {"mean": wide.mean(1), "std": wide.std(1), "l2_norm": wide.norm(dim=1)}[name].to(dtype)
            c.add(f"{name} of {dtype}", f"{name}(x, axis=1)", {"x": narrow}, y, tol=tol)
    c.add(
        "symbolic sizes",
        "std(x, axis=(0, 2))",
        {"x": x},
        x.std(dim=(0, 2)),
        dims={"x": "N, M, K", "result": "M"},
    )
    return c


def softmax():
    c = Cases("softmax", 4)
    x = c.data.normal(3, 5, 4, scale=3)
    inf = x[0].clone()
    inf[0, 1], inf[1, :], inf[2, 2], inf[3, 0] = -INF, -INF, INF, NAN
    big = x[0] * 1000
    names = {
        "softmax": F.softmax,
        "log_softmax": F.log_softmax,
        "softmin": F.softmin,
        "logsumexp": lambda t, dim: torch.logsumexp(t, dim),
    }
    for name, f in names.items():
        for axis in (0, 1, -1):
            c.add(f"{name}(x, axis={axis})", f"{name}(x, axis={axis})", {"x": x}, f(x, dim=axis))
        c.add(f"{name} of special values", f"{name}(x, axis=-1)", {"x": inf}, f(inf, dim=-1))
        c.add(f"{name} of large values", f"{name}(x, axis=-1)", {"x": big}, f(big, dim=-1))
        c.add(f"{name} of one column", f"{name}(x, axis=1)", {"x": x[:, :1]}, f(x[:, :1], dim=1))
        c.add(
            f"{name} symbolic sizes",
            f"{name}(x, axis=-1)",
            {"x": x},
            f(x, dim=-1),
            dims={"x": "A, B, N", "result": "A, B" if name == "logsumexp" else "A, B, N"},
        )
        for dtype, tol in ((torch.bfloat16, 2**-7), (torch.float16, 2**-10)):
            narrow = x.to(dtype)
            c.add(
                f"{name} of {dtype}",
                f"{name}(x, axis=-1)",
                {"x": narrow},
                f(narrow.double(), dim=-1).to(dtype),
                tol=tol,
            )
    c.add("softmax default axis", "softmax(x)", {"x": x}, F.softmax(x, -1))
    c.add("logsumexp keep", "logsumexp(x, axis=1, keep=true)", {"x": x}, torch.logsumexp(x, 1, keepdim=True))
    c.add("logsumexp of two axes", "logsumexp(x, axis=(0, 2))", {"x": x}, torch.logsumexp(x, (0, 2)))
    c.add("logsumexp of all", "logsumexp(x)", {"x": x}, torch.logsumexp(x, (0, 1, 2)))
    return c


def norm():
    c = Cases("norm", 5)
    x, w, b = c.data.normal(3, 5, 7), c.data.normal(7), c.data.normal(7)
    c.add("layer_norm", "layer_norm(x)", {"x": x}, F.layer_norm(x, (7,)))
    c.add("layer_norm weight", "layer_norm(x, w)", {"x": x, "w": w}, F.layer_norm(x, (7,), w))
    c.add(
        "layer_norm weight bias",
        "layer_norm(x, w, b, eps=0.01)",
        {"x": x, "w": w, "b": b},
        F.layer_norm(x, (7,), w, b, 0.01),
    )
    c.add("layer_norm bias", "layer_norm(x, bias=b)", {"x": x, "b": b}, F.layer_norm(x, (7,), None, b))
    c.add(
        "layer_norm symbolic",
        "layer_norm(x, w, b)",
        {"x": x, "w": w, "b": b},
        F.layer_norm(x, (7,), w, b),
        dims={"x": "A, B, N", "w": "N", "b": "N", "result": "A, B, N"},
    )
    c.add(
        "layer_norm of special values",
        "layer_norm(x)",
        {"x": specials(x[0])},
        F.layer_norm(specials(x[0]), (7,)),
    )
    c.add("layer_norm of one column", "layer_norm(x)", {"x": x[..., :1]}, F.layer_norm(x[..., :1], (1,)))
    for dtype, tol in ((torch.bfloat16, 2**-7), (torch.float16, 2**-10)):
        n = x.to(dtype)
        c.add(
            f"layer_norm of {dtype} with f64 weight",
            "layer_norm(x, w, b)",
            {"x": n, "w": w, "b": b},
            F.layer_norm(n.double(), (7,), w, b).to(dtype),
            tol=tol,
        )
        c.add(
            f"rms_norm of {dtype}",
            "rms_norm(x, w)",
            {"x": n, "w": w.to(dtype)},
            rms(n.double(), w.to(dtype).double()).to(dtype),
            tol=tol,
        )
    c.add("rms_norm", "rms_norm(x)", {"x": x}, rms(x))
    c.add("rms_norm weight", "rms_norm(x, w, eps=0.1)", {"x": x, "w": w}, rms(x, w, 0.1))

    for shape in ((2, 6, 3, 5), (3, 6), (2, 6, 5), (1, 6, 2, 3, 2)):
        y, w, b = c.data.normal(*shape), c.data.normal(6), c.data.normal(6)
        tag = f"{len(shape)}-D"
        for groups in (1, 2, 3, 6):
            if len(shape) == 2 and groups == 6:
                continue  # one element a group: PyTorch refuses
            c.add(
                f"group_norm {tag} {groups} groups",
                f"group_norm(x, {groups}, w, b)",
                {"x": y, "w": w, "b": b},
                F.group_norm(y, groups, w, b),
            )
        c.add(f"group_norm {tag} plain", "group_norm(x, 3)", {"x": y}, F.group_norm(y, 3))
        mean, var = c.data.normal(6), c.data.uniform(6, lo=0.5, hi=2)
        c.add(
            f"batch_norm {tag}",
            "batch_norm(x, m, v, w, b)",
            {"x": y, "m": mean, "v": var, "w": w, "b": b},
            F.batch_norm(y, mean, var, w, b),
        )
        c.add(
            f"batch_norm {tag} plain",
            "batch_norm(x, m, v, eps=0.1)",
            {"x": y, "m": mean, "v": var},
            F.batch_norm(y, mean, var, eps=0.1),
        )
        if len(shape) > 2:
            c.add(
                f"instance_norm {tag}",
                "instance_norm(x, w, b)",
                {"x": y, "w": w, "b": b},
                F.instance_norm(y, weight=w, bias=b),
            )
            c.add(
                f"local_response_norm {tag}",
                "local_response_norm(x, 3, alpha=0.1)",
                {"x": y},
                F.local_response_norm(y, 3, alpha=0.1),
            )
        if shape[0] > 1:
            m, v = torch.zeros(6).double(), torch.zeros(6).double()
            out = F.batch_norm(y, m, v, w, b, training=True, momentum=1.0)
            c.add(
                f"batch_norm_train {tag}",
                "y, m, v = batch_norm_train(x, w, b)",
                {"x": y, "w": w, "b": b},
                {"y": out, "m": m, "v": v},
            )
    y = c.data.normal(2, 6, 3, 5)
    w, b = c.data.normal(6), c.data.normal(6)
    c.add(
        "group_norm symbolic",
        "group_norm(x, 2, w, b)",
        {"x": y, "w": w, "b": b},
        F.group_norm(y, 2, w, b),
        dims={"x": "N, C, H, W", "w": "C", "b": "C", "result": "N, C, H, W"},
    )
    c.add("normalize", "normalize(x)", {"x": x}, F.normalize(x))
    c.add("normalize p=1", "normalize(x, p=1.0, axis=0)", {"x": x}, F.normalize(x, p=1.0, dim=0))
    c.add("l1_normalize", "l1_normalize(x)", {"x": x}, F.normalize(x, p=1.0, dim=-1))
    c.add("l2_normalize", "l2_normalize(x)", {"x": x}, F.normalize(x, dim=-1))
    c.add("l2_normalize of zeros", "l2_normalize(x)", {"x": x * 0}, F.normalize(x * 0, dim=-1))
    return c


def specials(m):
    m = m.clone()
    m[0, 1], m[1, 2], m[2, :] = NAN, INF, 3.0
    return m


def rms(x, w=1.0, eps=1e-6):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w


def scan():
    c = Cases("scan", 6)
    x = c.data.normal(3, 6, 4)
    flip = lambda t, axis: torch.flip(t, (axis,))
    forward = {
        "cumsum": torch.cumsum,
        "cumprod": torch.cumprod,
        "cummax": lambda t, dim: torch.cummax(t, dim)[0],
        "cummin": lambda t, dim: torch.cummin(t, dim)[0],
        "logcumsumexp": torch.logcumsumexp,
    }
    special = with_specials(x[0])
    for name, f in forward.items():
        for axis in (0, 1, -1):
            c.add(f"{name}(x, axis={axis})", f"{name}(x, axis={axis})", {"x": x}, f(x, dim=axis))
            if name != "logcumsumexp":
                text = f"{name}(x, axis={axis}, reverse=true)"
                c.add(text, text, {"x": x}, flip(f(flip(x, axis), dim=axis), axis))
            if name in ("cumsum", "cumprod"):
                text = f"{name}(x, axis={axis}, exclusive=true)"
                c.add(text, text, {"x": x}, exclusive(name, x, axis))
                text = f"{name}(x, axis={axis}, reverse=true, exclusive=true)"
                c.add(text, text, {"x": x}, flip(exclusive(name, flip(x, axis), axis), axis))
        c.add(
            f"{name} symbolic",
            f"{name}(x, axis=1)",
            {"x": x},
            f(x, dim=1),
            dims={"x": "A, N, B", "result": "A, N, B"},
        )
        if name != "logcumsumexp":
            c.add(f"{name} of special values", f"{name}(x)", {"x": special}, f(special, dim=-1))
        c.add(f"{name} of nothing", f"{name}(x)", {"x": x[..., :0]}, x[..., :0])
    low = x[0].clone()
    low[0, 0], low[1, :2] = -INF, -INF
    c.add(
        "logcumsumexp from -inf", "logcumsumexp(x)", {"x": low}, np.logaddexp.accumulate(low.numpy(), axis=-1)
    )
    i = c.data.ints(4, 5, lo=-5, hi=6)
    c.add("cumsum of integers", "cumsum(x)", {"x": i}, i.cumsum(-1))
    c.add("cummax of integers", "cummax(x, axis=0)", {"x": i}, i.cummax(0)[0])
    c.add(
        "trapezoid", "trapezoid(y, dx=0.5)", {"y": x}, scipy.integrate.trapezoid(x.numpy(), dx=0.5, axis=-1)
    )
    c.add("trapezoid axis", "trapezoid(y, axis=1)", {"y": x}, scipy.integrate.trapezoid(x.numpy(), axis=1))
    return c


def exclusive(name, x, axis):
    f = {"cumsum": np.cumsum, "cumprod": np.cumprod}[name]
    a = np.moveaxis(x.numpy(), axis, -1)
    first = np.full(a.shape[:-1] + (1,), 0.0 if name == "cumsum" else 1.0)
    return torch.from_numpy(
        np.moveaxis(np.concatenate([first, f(a, axis=-1)[..., :-1]], axis=-1), -1, axis).copy()
    )


def sort():
    c = Cases("sort", 7)
    x = c.data.normal(3, 7, 2)
    ties = c.data.ints(4, 9, lo=0, hi=4)
    special = torch.tensor(
        [[3.0, NAN, -INF, INF, 0.0, -1.0, NAN], [INF, 2.0, 2.0, -INF, -INF, 5.0, 1.0]], dtype=torch.float64
    )
    for axis in (0, 1, -1):
        for descending in (False, True):
            arg = f"x, axis={axis}{', descending=true' if descending else ''}"
            values, at = torch.sort(x, dim=axis, descending=descending, stable=True)
            c.add(f"sort({arg})", f"sort({arg})", {"x": x}, values)
            c.add(f"argsort({arg})", f"argsort({arg})", {"x": x}, at)
    for descending in (False, True):
        arg = f"x{', descending=true' if descending else ''}"
        values, at = torch.sort(ties, dim=-1, descending=descending, stable=True)
        c.add(f"sort of ties ({arg})", f"sort({arg})", {"x": ties}, values)
        c.add(f"argsort of ties ({arg})", f"argsort({arg})", {"x": ties}, at)
        values, at = torch.sort(special, dim=-1, descending=descending, stable=True)
        c.add(f"sort of special values ({arg})", f"sort({arg})", {"x": special}, values)
        c.add(f"argsort of special values ({arg})", f"argsort({arg})", {"x": special}, at)
    values, at = torch.topk(x, 3, dim=1)
    c.add("topk", "v, at = topk(x, 3, axis=1)", {"x": x}, {"v": values, "at": at})
    values, at = torch.topk(x, 2, dim=0, largest=False)
    c.add("topk smallest", "v, at = topk(x, 2, axis=0, largest=false)", {"x": x}, {"v": values, "at": at})
    c.add("kthvalue", "kthvalue(x, 2, axis=1)", {"x": x}, torch.kthvalue(x, 2, dim=1)[0])
    c.add("median", "median(x, axis=1)", {"x": x}, torch.median(x, dim=1)[0])
    c.add("median of an even number", "median(x, axis=-1)", {"x": x}, torch.median(x, dim=-1)[0])
    c.add("median of special values", "median(x)", {"x": special}, torch.median(special, dim=-1)[0])
    for q in (0.0, 0.3, 0.5, 1.0):
        c.add(f"quantile {q}", f"quantile(x, {q}, axis=1)", {"x": x}, torch.quantile(x, q, dim=1))
    for how in ("lower", "higher", "nearest", "midpoint"):
        text = f'quantile(x, 0.7, axis=0, interpolation="{how}")'
        c.add(f"quantile {how}", text, {"x": x}, torch.quantile(x, 0.7, dim=0, interpolation=how))
    ends = torch.tensor([[NAN, 1.0, 2.0], [-INF, 0.5, 3.0]], dtype=torch.float64)
    c.add("quantile of special values", "quantile(x, 0.5)", {"x": ends}, torch.quantile(ends, 0.5, dim=-1))
    return c
