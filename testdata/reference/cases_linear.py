"""Products, convolutions, pooling and attention."""

import numpy as np
import torch
import torch.nn.functional as F

from harness import Cases


def all_cases():
    return [linear(), conv(), patches(), pool(), sample(), attention()]


def linear():
    c = Cases("linear", 9)
    n = c.data.normal
    for a, b in (
        ((3, 5), (5, 4)),
        ((2, 3, 5), (5, 4)),
        ((2, 1, 3, 5), (3, 5, 4)),
        ((5,), (5, 4)),
        ((3, 5), (5,)),
        ((5,), (5,)),
        ((2, 3, 5), (5,)),
        ((3, 0), (0, 4)),
        ((0, 3), (3, 2)),
    ):
        x, y = n(*a), n(*b)
        c.add(f"matmul {a} {b}", "matmul(a, b)", {"a": x, "b": y}, x @ y)
        c.add(f"@ {a} {b}", "a @ b", {"a": x, "b": y}, x @ y)
    x, w, b = n(2, 3, 5), n(4, 5), n(4)
    c.add("linear", "linear(x, w, b)", {"x": x, "w": w, "b": b}, F.linear(x, w, b))
    c.add("linear no bias", "linear(x, w)", {"x": x, "w": w}, F.linear(x, w))
    c.add(
        "linear symbolic",
        "linear(x, w, b)",
        {"x": x, "w": w, "b": b},
        F.linear(x, w, b),
        dims={"x": "A, B, K", "w": "N, K", "b": "N", "result": "A, B, N"},
    )
    hx, hw = x.to(torch.bfloat16), w.to(torch.bfloat16)
    c.add(
        "linear of bf16",
        "linear(x, w)",
        {"x": hx, "w": hw},
        F.linear(hx.double(), hw.double()).to(torch.bfloat16),
        tol=2**-7,
    )
    x1, x2, w3 = n(3, 4), n(3, 5), n(2, 4, 5)
    c.add(
        "bilinear",
        "bilinear(a, b, w, c)",
        {"a": x1, "b": x2, "w": w3, "c": b[:2]},
        F.bilinear(x1, x2, w3, b[:2]),
    )
    a, b = n(2, 3, 5), n(2, 5, 4)
    c.add("bmm", "bmm(a, b)", {"a": a, "b": b}, torch.bmm(a, b))
    c.add("mv", "mv(a, b)", {"a": a[0], "b": b[0, :, 0]}, torch.mv(a[0], b[0, :, 0]))
    u, v = n(6), n(4)
    c.add("dot", "dot(a, b)", {"a": u, "b": u + 1}, torch.dot(u, u + 1))
    c.add("outer", "outer(a, b)", {"a": u, "b": v}, torch.outer(u, v))
    c.add("vecdot", "vecdot(a, b, axis=1)", {"a": a, "b": a * 2}, (a * a * 2).sum(1))
    m = n(3, 4)
    c.add(
        "addmm",
        "addmm(i, a, b, beta=0.5, alpha=2)",
        {"i": m, "a": a[0], "b": b[0]},
        torch.addmm(m, a[0], b[0], beta=0.5, alpha=2),
    )
    c.add("addmm broadcast", "addmm(i, a, b)", {"i": v, "a": a[0], "b": b[0]}, torch.addmm(v, a[0], b[0]))
    c.add(
        "baddbmm",
        "baddbmm(i, a, b, beta=2)",
        {"i": m, "a": a, "b": b},
        torch.baddbmm(m.expand(2, 3, 4), a, b, beta=2),
    )
    p, q, r = n(3, 4), n(3, 4), c.data.uniform(3, 4, lo=1, hi=2)
    c.add(
        "addcmul", "addcmul(a, b, c, value=0.5)", {"a": p, "b": q, "c": r}, torch.addcmul(p, q, r, value=0.5)
    )
    c.add(
        "addcdiv", "addcdiv(a, b, c, value=0.5)", {"a": p, "b": q, "c": r}, torch.addcdiv(p, q, r, value=0.5)
    )
    k1, k2 = n(2, 3), n(3, 2)
    c.add("kron", "kron(a, b)", {"a": k1, "b": k2}, torch.kron(k1, k2))
    t1, t2 = n(4, 3), n(4, 3)
    c.add("cross", "cross(a, b)", {"a": t1, "b": t2}, torch.cross(t1, t2, dim=-1))
    d1, d2 = n(2, 3, 4), n(2, 5, 4)
    c.add("cdist", "cdist(a, b)", {"a": d1, "b": d2}, (d1[:, :, None] - d2[:, None]).norm(dim=-1))
    e1, e2 = n(2, 3, 4), n(2, 4, 5)
    for spec, args in (
        ("bij,bjk->bik", (e1, e2)),
        ("bij,bjk->ki", (e1, e2)),
        ("ij->ji", (e1[0],)),
        ("ij->", (e1[0],)),
        ("ii->i", (e1[0][:, :3],)),
        ("i,j->ij", (u, v)),
        ("bij,bij->b", (e1, e1 + 1)),
        ("ij,jk,kl->il", (e1[0], e2[0], n(5, 2))),
        ("...ij,...jk->...ik", (n(2, 1, 3, 4), n(5, 4, 2))),
        ("i...,i...->...", (n(3, 2, 4), n(3, 4))),
        ("...i,ij", (e1, e2[0])),
        ("...ij->...j", (e1,)),
    ):
        names = {chr(97 + i): t for i, t in enumerate(args)}
        c.add(f"einsum {spec}", f'einsum("{spec}", {", ".join(names)})', names, torch.einsum(spec, *args))
    return c


def conv():
    c = Cases("conv", 10)
    n = c.data.normal
    options = (
        {},
        {"stride": 2},
        {"padding": 1},
        {"dilation": 2, "padding": 2},
        {"stride": 2, "padding": 1, "dilation": 2},
        {"groups": 2, "padding": 1},
    )
    for rank, f, spatial in ((1, F.conv1d, (11,)), (2, F.conv2d, (7, 6)), (3, F.conv3d, (5, 5, 6))):
        kernel = (3, 2, 3)[:rank]
        for o in options:
            g = o.get("groups", 1)
            x, w, b = n(2, 4, *spatial), n(4, 4 // g, *kernel), n(4)
            if rank == 3:
                x, w, b = x[:1], w[: 2 * g], b[: 2 * g]
            text = "".join(f", {k}={v}" for k, v in o.items())
            c.add(
                f"conv{rank}d{text}", f"conv{rank}d(x, w, b{text})", {"x": x, "w": w, "b": b}, f(x, w, b, **o)
            )
    x, w = n(2, 4, 9), n(8, 1, 3)
    c.add("conv1d depthwise", "conv1d(x, w, groups=4)", {"x": x, "w": w}, F.conv1d(x, w, groups=4))
    x, w, b = n(2, 3, 6, 5), n(4, 3, 3, 3), n(4)
    c.add(
        "conv2d symbolic",
        "conv2d(x, w, b, padding=1)",
        {"x": x, "w": w, "b": b},
        F.conv2d(x, w, b, padding=1),
        dims={"x": "N, C, H, W", "w": "O, C, 3, 3", "b": "O", "result": "N, O, H, W"},
    )
    for rank, f, spatial in ((1, F.conv_transpose1d, (5,)), (2, F.conv_transpose2d, (4, 3))):
        for o in (
            {},
            {"stride": 2},
            {"stride": 2, "padding": 1},
            {"stride": 3, "dilation": 2, "output_padding": 1},
        ):
            x, w, b = n(2, 3, *spatial), n(3, 4, *(3, 2)[:rank]), n(4)
            text = "".join(f", {k}={v}" for k, v in o.items())
            c.add(
                f"conv_transpose{rank}d{text}",
                f"conv_transpose{rank}d(x, w, b{text})",
                {"x": x, "w": w, "b": b},
                f(x, w, b, **o),
            )
    windows(c)
    return c


def windows(c):
    """windows adds convolutions whose axes differ, padding of every kind, and groups of transposed ones."""
    n = c.data.normal
    x, w, b = n(2, 4, 9, 8), n(4, 4, 3, 2), n(4)
    inputs = {"x": x, "w": w, "b": b}
    c.add("each", "x * f32(each(3, 2)[1]) + f32(each((4, 5), 2)[1])", {"x": b}, b * 3 + 5)
    c.add("side", "x + f32(side((1, (2, 3)), 1, 2)[1] - side(4, 0, 2)[0] + side(\"same\", 0, 1, 5)[1])", {"x": b}, b + 2)
    c.add(
        "conv2d lists",
        "conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2))",
        inputs,
        F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
    )
    c.add(
        "conv2d pairs",
        "conv2d(x, w, b, padding=((1, 0), (0, 2)))",
        inputs,
        F.conv2d(F.pad(x, (0, 2, 1, 0)), w, b),
    )
    c.add("conv2d same", 'conv2d(x, w, b, padding="same")', inputs, F.conv2d(x, w, b, padding="same"))
    c.add("conv2d valid", 'conv2d(x, w, b, padding="valid")', inputs, F.conv2d(x, w, b))
    for mode, torch_mode in (("reflect", "reflect"), ("replicate", "replicate"), ("circular", "circular")):
        c.add(
            f"conv2d {mode}",
            f'conv2d(x, w, b, padding=(1, 2), padding_mode="{mode}")',
            inputs,
            F.conv2d(F.pad(x, (2, 2, 1, 1), mode=torch_mode), w, b),
        )
    x, w = n(2, 4, 9), n(4, 2, 4)
    c.add(
        "conv1d same, even, in groups",
        'conv1d(x, w, padding="same", dilation=2, groups=2)',
        {"x": x, "w": w},
        F.conv1d(x, w, padding="same", dilation=2, groups=2),
    )
    c.add("conv1d pair", "conv1d(x, w, padding=(3, 0), groups=2)", {"x": x, "w": w}, F.conv1d(F.pad(x, (3, 0)), w, groups=2))
    x, w = n(1, 2, 4, 5, 3), n(2, 2, 2, 3, 1)
    c.add(
        "conv3d lists",
        "conv3d(x, w, stride=(1, 2, 1), padding=(0, 1, 2))",
        {"x": x, "w": w},
        F.conv3d(x, w, stride=(1, 2, 1), padding=(0, 1, 2)),
    )
    x, w, b = n(1, 2, 3, 2, 3), n(2, 3, 2, 3, 2), n(3)
    c.add("conv_transpose3d", "conv_transpose3d(x, w, b)", {"x": x, "w": w, "b": b}, F.conv_transpose3d(x, w, b))
    c.add(
        "conv_transpose3d lists",
        "conv_transpose3d(x, w, b, stride=(2, 1, 3), padding=(1, 0, 1), output_padding=(1, 0, 2))",
        {"x": x, "w": w, "b": b},
        F.conv_transpose3d(x, w, b, stride=(2, 1, 3), padding=(1, 0, 1), output_padding=(1, 0, 2)),
    )
    x, w = n(2, 4, 4, 3), n(4, 3, 3, 2)
    c.add(
        "conv_transpose2d groups",
        "conv_transpose2d(x, w, stride=(2, 1), dilation=(1, 2), groups=2)",
        {"x": x, "w": w},
        F.conv_transpose2d(x, w, stride=(2, 1), dilation=(1, 2), groups=2),
    )
    x, w = n(2, 4, 5), n(4, 1, 3)
    c.add(
        "conv_transpose1d depthwise",
        "conv_transpose1d(x, w, stride=2, groups=4)",
        {"x": x, "w": w},
        F.conv_transpose1d(x, w, stride=2, groups=4),
    )


def patches():
    c = Cases("patches", 12)
    x = c.data.normal(2, 3, 7, 6)
    for mode in ("reflect", "replicate", "circular"):
        c.add(
            f"pad_mode {mode}",
            f'pad_mode(pad_mode(x, (2, 1), "{mode}", axis=2), 3, "{mode}")',
            {"x": x},
            F.pad(x, (3, 3, 2, 1), mode=mode),
        )
    c.add("pad_mode zeros", "pad_mode(x, (2, 1))", {"x": x}, F.pad(x, (2, 1)))
    for text, o in (
        ("3", {"kernel_size": 3}),
        ("(3, 2), padding=1, stride=2", {"kernel_size": (3, 2), "padding": 1, "stride": 2}),
        ("2, dilation=(2, 1), stride=(1, 3)", {"kernel_size": 2, "dilation": (2, 1), "stride": (1, 3)}),
    ):
        u = F.unfold(x, **o)
        c.add(f"unfold2d {text}", f"unfold2d(x, {text})", {"x": x}, u)
        y = c.data.normal(*u.shape)
        c.add(f"fold2d {text}", f"fold2d(x, (7, 6), {text})", {"x": y}, F.fold(y, (7, 6), **o))
    line = c.data.normal(2, 3, 9)
    most, at = F.max_pool1d(line, 3, stride=3, return_indices=True)
    c.add("max_unpool1d", "max_unpool1d(x, at, 9)", {"x": most, "at": at}, F.max_unpool1d(most, at, 3, output_size=[9]))
    most, at = F.max_pool2d(x, 2, return_indices=True)
    c.add(
        "max_unpool2d",
        "max_unpool2d(x, at, (7, 6))",
        {"x": most, "at": at},
        F.max_unpool2d(most, at, 2, output_size=(7, 6)),
    )
    return c


def sample():
    c = Cases("sample", 13)
    n = c.data.normal
    x, y = n(2, 3, 4, 5), n(1, 2, 3, 2, 4)
    line = n(2, 3, 7)
    for s in (2, 3):
        c.add(f"upsample_nearest3d {s}", f"upsample_nearest3d(x, {s})", {"x": y}, F.interpolate(y, scale_factor=s, mode="nearest"))
        c.add(f"upsample_trilinear {s}", f"upsample_trilinear(x, {s})", {"x": y}, F.interpolate(y, scale_factor=s, mode="trilinear"))
        c.add(f"upsample_bicubic {s}", f"upsample_bicubic(x, {s})", {"x": x}, F.interpolate(x, scale_factor=s, mode="bicubic"))
        c.add(
            f"upsample_cubic {s}",
            f"upsample_cubic(x, {s})",
            {"x": line},
            F.interpolate(line[:, :, None].repeat(1, 1, 4, 1), scale_factor=s, mode="bicubic")[:, :, 0],
        )
    t = torch.linspace(0, 1, 6, dtype=torch.float64)
    c.add("cubic_near", "cubic_near(t)", {"t": t}, 1.25 * t**3 - 2.25 * t**2 + 1)
    c.add("cubic_far", "cubic_far(t)", {"t": t + 1}, -0.75 * ((t + 1) ** 3 - 5 * (t + 1) ** 2 + 8 * (t + 1) - 4))
    grid = c.data.uniform(2, 3, 6, 2, lo=-1.6, hi=1.6)
    c.add("grid_places", 'grid_places(x, 5, "zeros", false)', {"x": line}, ((line + 1) * 5 - 1) / 2)
    for mode in ("bilinear", "nearest"):
        for pad in ("zeros", "border", "reflection"):
            for corners in (False, True):
                text = f'mode="{mode}", padding_mode="{pad}", align_corners={str(corners).lower()}'
                c.add(
                    f"grid_sample {mode} {pad} {corners}",
                    f"grid_sample(x, grid, {text})",
                    {"x": x, "grid": grid},
                    F.grid_sample(x, grid, mode=mode, padding_mode=pad, align_corners=corners),
                )
    interpolations(c, x, y, line)
    return c


def interpolations(c, x, y, line):
    inputs = {"linear": (line, (4, 7, 11)), "bilinear": (x, ((3, 8), (7, 2))), "bicubic": (x, ((3, 8), (7, 2))), "trilinear": (y, ((2, 5, 3),))}
    for mode, (t, sizes) in inputs.items():
        for size in sizes:
            for corners in (False, True):
                text = f'interpolate(x, {size}, mode="{mode}", align_corners={str(corners).lower()})'
                c.add(text, text, {"x": t}, F.interpolate(t, size, mode=mode, align_corners=corners))
        text = f'interpolate(x, scale_factor=2, mode="{mode}")'
        c.add(text, text, {"x": t}, F.interpolate(t, scale_factor=2, mode=mode))
        text = f"interpolate(x, {sizes[0]})"
        c.add(f"{text} beside {mode}", text, {"x": t}, F.interpolate(t, sizes[0]))
    text = 'interpolated_axis(x, 1, 5, "linear", false)'
    c.add(text, text, {"x": line}, F.interpolate(line.transpose(1, 2), 5, mode="linear").transpose(1, 2))
    c.add("interpolate symbolic", 'interpolate(x, (9, 3), mode="bilinear")', {"x": x}, F.interpolate(x, (9, 3), mode="bilinear"),
          dims={"x": "N, C, H, W", "result": "N, C, 9, 3"})


def pool():
    c = Cases("pool", 11)
    x, y = c.data.normal(2, 3, 11), c.data.normal(2, 7, 8)
    for o in (
        {"kernel_size": 3},
        {"kernel_size": 3, "stride": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 2, "stride": 1},
    ):
        text = "".join(f", {k}={v}" for k, v in o.items())
        for rank, t in ((1, x), (2, y)):
            c.add(
                f"max_pool{rank}d{text}",
                f"max_pool{rank}d(x{text})",
                {"x": t},
                getattr(F, f"max_pool{rank}d")(t, **o),
            )
            f = getattr(F, f"avg_pool{rank}d")
            c.add(f"avg_pool{rank}d{text}", f"avg_pool{rank}d(x{text})", {"x": t}, f(t, **o))
            if "padding" in o:
                c.add(
                    f"avg_pool{rank}d{text} inside",
                    f"avg_pool{rank}d(x{text}, count_include_pad=false)",
                    {"x": t},
                    f(t, count_include_pad=False, **o),
                )
    c.add(
        "max_pool1d dilation",
        "max_pool1d(x, 2, stride=1, dilation=3)",
        {"x": x},
        F.max_pool1d(x, 2, stride=1, dilation=3),
    )
    c.add(
        "max_pool2d dilation",
        "max_pool2d(x, 2, stride=1, dilation=2)",
        {"x": y},
        F.max_pool2d(y, 2, stride=1, dilation=2),
    )
    special = y.clone()
    special[0, 2, 2], special[1, 3, 3] = float("nan"), float("-inf")
    c.add("max_pool2d of special values", "max_pool2d(x, 2)", {"x": special}, F.max_pool2d(special, 2))
    positive = x.abs()
    c.add(
        "lp_pool1d",
        "lp_pool1d(x, 2.0, 3, stride=2)",
        {"x": positive},
        F.lp_pool1d(positive, 2.0, 3, stride=2),
    )
    for size in (1, 3, 4, 11):
        c.add(
            f"adaptive_avg_pool1d {size}",
            f"adaptive_avg_pool1d(x, {size})",
            {"x": x},
            F.adaptive_avg_pool1d(x, size),
        )
    for size in (1, 3, 5):
        c.add(
            f"adaptive_avg_pool2d {size}",
            f"adaptive_avg_pool2d(x, {size})",
            {"x": y},
            F.adaptive_avg_pool2d(y, size),
        )
    img = c.data.normal(2, 8, 3, 4)
    c.add("global_avg_pool", "global_avg_pool(x)", {"x": img}, img.mean((2, 3)))
    c.add(
        "upsample_nearest1d",
        "upsample_nearest1d(x, 3)",
        {"x": x},
        F.interpolate(x, scale_factor=3, mode="nearest"),
    )
    c.add(
        "upsample_nearest2d",
        "upsample_nearest2d(x, 2)",
        {"x": img},
        F.interpolate(img, scale_factor=2, mode="nearest"),
    )
    for s in (2, 3):
        c.add(
            f"upsample_linear {s}",
            f"upsample_linear(x, {s})",
            {"x": x},
            F.interpolate(x, scale_factor=s, mode="linear"),
        )
        c.add(
            f"upsample_bilinear {s}",
            f"upsample_bilinear(x, {s})",
            {"x": img},
            F.interpolate(img, scale_factor=s, mode="bilinear"),
        )
    c.add("pixel_shuffle", "pixel_shuffle(x, 2)", {"x": img}, F.pixel_shuffle(img, 2))
    even = img[:, :2, :2]
    c.add("pixel_unshuffle", "pixel_unshuffle(x, 2)", {"x": even}, F.pixel_unshuffle(even, 2))
    c.add(
        "channel_shuffle",
        "channel_shuffle(x, 4)",
        {"x": img},
        img.reshape(2, 4, 2, 3, 4).transpose(1, 2).reshape(2, 8, 3, 4),
    )
    c.add(
        "max_pool2d symbolic",
        "max_pool2d(x, 2)",
        {"x": img},
        F.max_pool2d(img, 2),
        dims={"x": "N, C, H, W", "result": "N, C, (H - 2) / 2 + 1, (W - 2) / 2 + 1"},
    )
    pools(c)
    return c


def pools(c):
    """pools adds windows whose axes differ, those that reach over the end, and where the largest are."""
    n = c.data.normal
    x, y, z = n(2, 3, 11), n(2, 2, 7, 8), n(2, 5, 6, 5)
    c.add("step", "x + f32(step(none, 3, 2)[1] + step((1, 2), 3, 2)[1])", {"x": x[0, 0]}, x[0, 0] + 5)
    c.add("pooled", "x * f32(pooled(7, 2, 2, 0, 1, true)) + f32(pooled(7, 2, 2, 0, 1, false))", {"x": x[0, 0]}, x[0, 0] * 4 + 3)
    for text, o in (
        ("3, stride=2, ceil_mode=true", {"kernel_size": 3, "stride": 2, "ceil_mode": True}),
        ("2, stride=3, padding=1, ceil_mode=true", {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True}),
        ("3, stride=2, padding=1", {"kernel_size": 3, "stride": 2, "padding": 1}),
    ):
        for rank, t in ((1, x), (2, y), (3, z)):
            f = getattr(F, f"max_pool{rank}d")
            many, at = f(t, return_indices=True, **o)
            c.add(f"max_pool{rank}d {text}", f"max_pool{rank}d(x, {text})", {"x": t}, many)
            c.add(f"max_pool{rank}d_indices {text}", f"max_pool{rank}d_indices(x, {text})", {"x": t}, at)
            g = getattr(F, f"avg_pool{rank}d")
            t4 = t if rank < 3 else t[None]
            c.add(f"avg_pool{rank}d {text}", f"avg_pool{rank}d(x, {text})", {"x": t}, g(t4, **o).reshape(many.shape))
            c.add(
                f"avg_pool{rank}d inside {text}",
                f"avg_pool{rank}d(x, {text}, count_include_pad=false)",
                {"x": t},
                g(t4, count_include_pad=False, **o).reshape(many.shape),
            )
    c.add(
        "max_pool2d lists",
        "max_pool2d(x, (3, 2), stride=(1, 2), padding=(1, 0), dilation=(2, 1))",
        {"x": y},
        F.max_pool2d(y, (3, 2), stride=(1, 2), padding=(1, 0), dilation=(2, 1)),
    )
    c.add(
        "max_pool2d_indices lists",
        "max_pool2d_indices(x, (3, 2), stride=(1, 2), padding=(1, 0), dilation=(2, 1))",
        {"x": y},
        F.max_pool2d(y, (3, 2), stride=(1, 2), padding=(1, 0), dilation=(2, 1), return_indices=True)[1],
    )
    c.add(
        "avg_pool2d divisor",
        "avg_pool2d(x, (3, 2), divisor_override=5)",
        {"x": y},
        F.avg_pool2d(y, (3, 2), divisor_override=5),
    )
    for size in (1, 3, 4, 11, 13):
        c.add(f"adaptive_max_pool1d {size}", f"adaptive_max_pool1d(x, {size})", {"x": x}, F.adaptive_max_pool1d(x, size))
    for size in (1, (3, 5), (7, 1)):
        c.add(f"adaptive_max_pool2d {size}", f"adaptive_max_pool2d(x, {size})", {"x": y}, F.adaptive_max_pool2d(y, size))
        c.add(f"adaptive_avg_pool2d {size} of a list", f"adaptive_avg_pool2d(x, {size})", {"x": y}, F.adaptive_avg_pool2d(y, size))
    for size in (2, (3, 1, 5)):
        c.add(f"adaptive_max_pool3d {size}", f"adaptive_max_pool3d(x, {size})", {"x": z}, F.adaptive_max_pool3d(z, size))
        c.add(f"adaptive_avg_pool3d {size}", f"adaptive_avg_pool3d(x, {size})", {"x": z}, F.adaptive_avg_pool3d(z, size))


def plain_attention(q, k, v, mask=None, bias=None, scale=None):
    s = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        s = s + bias
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(s, -1), 0.0) @ v


def attention():
    c = Cases("attention", 12)
    q, k, v = c.data.normal(2, 3, 5, 4), c.data.normal(2, 3, 7, 4), c.data.normal(2, 3, 7, 6)
    qkv = {"q": q, "k": k, "v": v}
    causal = torch.ones(5, 7).tril().bool()
    mask = c.data.bools(5, 7)
    mask[2] = False
    mask[0, 0] = True
    bias = c.data.normal(3, 5, 7)
    c.add("attention", "attention(q, k, v)", qkv, plain_attention(q, k, v))
    c.add("attention scale", "attention(q, k, v, scale=0.3)", qkv, plain_attention(q, k, v, scale=0.3))
    c.add("attention causal", "attention(q, k, v, causal=true)", qkv, plain_attention(q, k, v, causal))
    c.add(
        "attention mask, one row masked whole",
        "attention(q, k, v, mask)",
        {**qkv, "mask": mask},
        plain_attention(q, k, v, mask),
    )
    c.add(
        "attention bias",
        "attention(q, k, v, bias=b)",
        {**qkv, "b": bias},
        plain_attention(q, k, v, bias=bias),
    )
    c.add(
        "attention mask bias causal",
        "attention(q, k, v, mask, b, causal=true)",
        {**qkv, "mask": mask, "b": bias},
        plain_attention(q, k, v, mask & causal, bias),
    )
    c.add(
        "attention symbolic",
        "attention(q, k, v)",
        qkv,
        plain_attention(q, k, v),
        dims={"q": "B, A, L, E", "k": "B, A, S, E", "v": "B, A, S, F", "result": "B, A, L, F"},
    )
    c.add(
        "attention of matrices",
        "attention(q, k, v)",
        {n: t[0, 0] for n, t in qkv.items()},
        plain_attention(q[0, 0], k[0, 0], v[0, 0]),
    )
    half = {n: t.to(torch.bfloat16) for n, t in qkv.items()}
    c.add(
        "attention of bf16",
        "attention(q, k, v)",
        half,
        plain_attention(*(t.double() for t in half.values())).to(torch.bfloat16),
        tol=2**-6,
    )

    x = c.data.normal(2, 5, 6)
    pos = torch.tensor([3.0, 0.0, 7.0, 100.0, 1.0]).double()
    c.add("rope", "rope(x)", {"x": x}, rotated(x.numpy(), np.arange(5)))
    c.add(
        "rope positions base",
        "rope(x, pos, base=500)",
        {"x": x, "pos": pos},
        rotated(x.numpy(), pos.numpy(), 500.0),
    )
    c.add("rope_interleaved", "rope_interleaved(x)", {"x": x}, rotated_pairs(x.numpy(), np.arange(5)))
    c.add(
        "rope_interleaved positions",
        "rope_interleaved(x, pos)",
        {"x": x, "pos": pos},
        rotated_pairs(x.numpy(), pos.numpy()),
    )
    like = torch.zeros(4, 3, 5).double()
    slopes = 2.0 ** (-8 * np.arange(1, 5) / 4)
    distance = np.abs(np.arange(5)[None, :] - np.arange(3)[:, None])
    c.add("alibi", "alibi(x)", {"x": like}, -slopes[:, None, None] * distance)
    return c


def rotated(x, pos, base=10000.0):
    """The pairs (i, i + D/2) as complex numbers, turned."""
    h = x.shape[-1] // 2
    z = (x[..., :h] + 1j * x[..., h:]) * np.exp(1j * pos[:, None] * base ** (-np.arange(h) / h))
    return np.concatenate([z.real, z.imag], axis=-1)


def rotated_pairs(x, pos, base=10000.0):
    """The pairs (2i, 2i + 1) as complex numbers, turned."""
    h = x.shape[-1] // 2
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * pos[:, None] * base ** (-np.arange(h) / h))
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
