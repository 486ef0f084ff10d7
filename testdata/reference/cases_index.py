"""Shapes, slices and indices: library functions and builtins."""

import numpy as np
import torch
import torch.nn.functional as F

from harness import Cases


def all_cases():
    return [shape(), index()]


def shape():
    c = Cases("shape", 13)
    x = c.data.normal(2, 4, 6)
    n = x.numpy()
    for d in (-2, 0, 1, 9):
        c.add(f"tril diagonal={d}", f"tril(x, diagonal={d})", {"x": x}, x.tril(d))
        c.add(f"triu diagonal={d}", f"triu(x, diagonal={d})", {"x": x}, x.triu(d))
    c.add("tril", "tril(x)", {"x": x}, x.tril())
    c.add("tril drops NaN", "tril(x)", {"x": x * float("nan")}, (x * float("nan")).tril())
    c.add("eye", "eye(3)", {}, torch.eye(3).float())
    c.add("eye of rows and columns", "eye(2, 4)", {}, torch.eye(2, 4).float())
    one = {
        "reshape(x, 4, 12)": x.reshape(4, 12),
        "reshape(x, 3, -1, 2)": x.reshape(3, -1, 2),
        "reshape(x, -1)": x.reshape(-1),
        "transpose(x, 0, 2)": x.transpose(0, 2),
        "transpose(x, -1, 1)": x.transpose(-1, 1),
        "permute(x, (2, 0, 1))": x.permute(2, 0, 1),
        "reshape(transpose(x, 0, 2), 3, 16)": x.transpose(0, 2).reshape(3, 16),
        "flip(x, axis=1)": x.flip(1),
        "flip(x, axis=-1)": x.flip(-1),
        "roll(x, 2, axis=1)": torch.roll(x, 2, 1),
        "roll(x, -1, axis=-1)": torch.roll(x, -1, -1),
        "roll(x, 13, axis=0)": torch.roll(x, 13, 0),
        "unsqueeze(x, 1)": x.unsqueeze(1),
        "unsqueeze(x, -1)": x.unsqueeze(-1),
        "squeeze(x[:, :1], axis=1)": x[:, 0],
        "broadcast(x[:, none], 2, 3, 4, 6)": x[:, None].expand(2, 3, 4, 6),
        "zeros_like(x)": torch.zeros_like(x),
        "ones_like(x)": torch.ones_like(x),
        "pad(x, (1, 2), axis=1)": F.pad(x, (0, 0, 1, 2)),
        "pad(x, (0, 3), axis=-1, value=1.5)": F.pad(x, (0, 3), value=1.5),
        "x[0]": x[0],
        "x[-1]": x[-1],
        "x[:, 1:3]": x[:, 1:3],
        "x[:, :-1]": x[:, :-1],
        "x[..., 0]": x[..., 0],
        "x[..., ::2]": x[..., ::2],
        "x[:, none]": x[:, None],
        "x[1, 2]": x[1, 2],
        "x[..., 1:5:2]": x[..., 1:5:2],
        "x[0, :, -2]": x[0, :, -2],
        "x[:, 2:2]": x[:, 2:2],
        "flatten(x)": x.flatten(1),
        "ravel(x)": x.ravel(),
        "matrix_transpose(x)": x.transpose(-1, -2),
        "swapaxes(x, 0, 1)": x.transpose(0, 1),
        "narrow(x, 1, 1, 2)": x.narrow(1, 1, 2),
        "diff(x)": torch.diff(x),
        "diff(x, axis=1)": torch.diff(x, dim=1),
        "diag_embed(x)": torch.diag_embed(x),
        "diagonal(x[..., :4])": x[..., :4].diagonal(dim1=-2, dim2=-1),
        "zero_pad2d(x, 1, 2, 0, 3)": F.pad(x, (1, 2, 0, 3)),
        "reflect_pad(x, 2, 3)": F.pad(x, (2, 3), mode="reflect"),
        "replicate_pad(x, 2, 1)": F.pad(x, (2, 1), mode="replicate"),
        "circular_pad(x, 2, 3)": F.pad(x, (2, 3), mode="circular"),
        "unfold(x, 3, 2)": x.unfold(-1, 3, 2),
        "concat(x, x * 2, axis=0)": torch.cat([x, x * 2], 0),
        "concat(x, x[:, :1], x, axis=1)": torch.cat([x, x[:, :1], x], 1),
        "stack(x, x + 1, axis=0)": torch.stack([x, x + 1], 0),
        "stack(x, x + 1, axis=-1)": torch.stack([x, x + 1], -1),
        "repeat(x, 3, axis=1)": torch.from_numpy(np.repeat(n, 3, axis=1)),
        "f64(iota(5))": torch.arange(5).double(),
        "full(2.5, 3, 2, dtype=f64)": torch.full((3, 2), 2.5).double(),
    }
    for text, y in one.items():
        c.add(text, text, {"x": x}, y)
    a, b = x.split(3, dim=-1)
    c.add("split", "a, b = split(x, 2, axis=-1)", {"x": x}, {"a": a, "b": b})
    p, q, r = x.split(2, dim=2)
    c.add("split in three", "a, b, c = split(x, 3, axis=2)", {"x": x}, {"a": p, "b": q, "c": r})
    c.add(
        "symbolic slices",
        "result = x[:, 1:M - 1, ::2] - x[0, 0, 0]",
        {"x": x},
        {"result": x[:, 1:3, ::2] - x[0, 0, 0]},
        dims={"x": "N, M, 6", "result": "N, M - 2, 3"},
    )
    c.add(
        "symbolic reshape",
        "reshape(x, N * M, 6)",
        {"x": x},
        x.reshape(8, 6),
        dims={"x": "N, M, 6", "result": "N * M, 6"},
    )
    return c


def index():
    c = Cases("index", 14)
    x = c.data.normal(3, 5, 4)
    table, at = c.data.normal(7, 3), c.data.ints(2, 4, lo=0, hi=7)
    c.add("embedding", "embedding(at, table)", {"at": at, "table": table}, F.embedding(at, table))
    c.add(
        "embedding i32",
        "embedding(at, table)",
        {"at": at.to(torch.int32), "table": table},
        F.embedding(at, table),
    )
    c.add(
        "embedding symbolic",
        "embedding(at, table)",
        {"at": at, "table": table},
        F.embedding(at, table),
        dims={"at": "N, M", "table": "V, D", "result": "N, M, D"},
    )
    c.add("table[at]", "table[at]", {"at": at, "table": table}, table[at])
    c.add("one_hot", "one_hot(at, 7)", {"at": at}, F.one_hot(at, 7))
    for axis in (0, 1, -1):
        n = x.shape[axis]
        where = c.data.ints(*(2 if i == axis % 3 else d for i, d in enumerate(x.shape)), lo=0, hi=n)
        c.add(
            f"gather axis={axis}",
            f"gather(x, at, axis={axis})",
            {"x": x, "at": where},
            torch.gather(x, axis, where),
        )
        some = c.data.ints(6, lo=0, hi=n)
        c.add(
            f"index_select axis={axis}",
            f"index_select(x, at, axis={axis})",
            {"x": x, "at": some},
            torch.index_select(x, axis, some),
        )
        source = c.data.normal(*(6 if i == axis % 3 else d for i, d in enumerate(x.shape)))
        c.add(
            f"index_add axis={axis}",
            f"index_add(x, at, s, axis={axis})",
            {"x": x, "at": some, "s": source},
            x.index_add(axis, some, source),
        )
        many = c.data.ints(*source.shape, lo=0, hi=n)
        c.add(
            f"scatter_add axis={axis}",
            f"scatter_add(x, at, s, axis={axis})",
            {"x": x, "at": many, "s": source},
            x.scatter_add(axis, many, source),
        )
    flat = c.data.ints(20, lo=0, hi=6)
    c.add("bincount", "bincount(x, 8)", {"x": flat}, torch.bincount(flat, minlength=8))
    mask = c.data.bools(3, 5, 4)
    c.add("masked_fill", "masked_fill(x, mask, -1.5)", {"x": x, "mask": mask}, x.masked_fill(mask, -1.5))
    return c
