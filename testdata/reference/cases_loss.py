"""Losses."""

import torch
import torch.nn.functional as F

from harness import Cases

INF = float("inf")


def all_cases():
    return [loss()]


def loss():
    c = Cases("loss", 8)
    x, y, z = (c.data.normal(4, 5, scale=2) for _ in range(3))
    p, q = c.data.uniform(4, 5), c.data.uniform(4, 5)
    sign = c.data.ints(4, 5, lo=0, hi=2).double() * 2 - 1
    pairs = {
        "l1_loss(a, b{})": (F.l1_loss, x, y, {}),
        "mse_loss(a, b{})": (F.mse_loss, x, y, {}),
        "huber_loss(a, b{})": (F.huber_loss, x, y, {}),
        "huber_loss(a, b, delta=0.3{})": (F.huber_loss, x, y, {"delta": 0.3}),
        "smooth_l1_loss(a, b{})": (F.smooth_l1_loss, x, y, {}),
        "smooth_l1_loss(a, b, beta=0.4{})": (F.smooth_l1_loss, x, y, {"beta": 0.4}),
        "smooth_l1_loss(a, b, beta=0.0{})": (F.smooth_l1_loss, x, y, {"beta": 0.0}),
        "bce_loss(a, b{})": (F.binary_cross_entropy, p, q, {}),
        "bce_with_logits_loss(a, b{})": (F.binary_cross_entropy_with_logits, x, q, {}),
        "kl_div(a, b{})": (F.kl_div, F.log_softmax(x, -1), F.softmax(y, -1), {}),
        "kl_div(a, b, log_target=true{})": (
            F.kl_div,
            F.log_softmax(x, -1),
            F.log_softmax(y, -1),
            {"log_target": True},
        ),
        "hinge_loss(a, b{})": (
            lambda a, b, reduction: finish(torch.clamp(1 - a * b, min=0), reduction),
            x,
            sign,
            {},
        ),
        "hinge_embedding_loss(a, b{})": (F.hinge_embedding_loss, x, sign, {}),
        "hinge_embedding_loss(a, b, margin=2.0{})": (F.hinge_embedding_loss, x, sign, {"margin": 2.0}),
        "soft_margin_loss(a, b{})": (F.soft_margin_loss, x, sign, {}),
        "poisson_nll_loss(a, b{})": (F.poisson_nll_loss, x, q, {}),
        "poisson_nll_loss(a, b, log_input=false{})": (F.poisson_nll_loss, p, q, {"log_input": False}),
        "log_cosh_loss(a, b{})": (
            lambda a, b, reduction: finish(torch.log(torch.cosh(a - b)), reduction),
            x,
            y,
            {},
        ),
    }
    for text, (f, a, b, args) in pairs.items():
        for reduction in ("mean", "sum", "none"):
            body = text.format("" if reduction == "mean" else f', reduction="{reduction}"')
            c.add(body, body, {"a": a, "b": b}, f(a, b, reduction=reduction, **args), tol=1e-11)
    a, b = F.log_softmax(x, -1), F.softmax(y, -1)
    c.add(
        "kl_div batchmean",
        'kl_div(a, b, reduction="batchmean")',
        {"a": a, "b": b},
        F.kl_div(a, b, reduction="batchmean"),
    )
    zero = b.clone()
    zero[0, 0] = 0
    c.add(
        "kl_div of a zero target",
        'kl_div(a, b, reduction="none")',
        {"a": a, "b": zero},
        F.kl_div(a, zero, reduction="none"),
    )
    ends, t = torch.tensor([0.0, 1.0, 0.0, 1.0]).double(), torch.tensor([0.0, 0.0, 1.0, 1.0]).double()
    c.add(
        "bce_loss at the ends",
        'bce_loss(a, b, reduction="none")',
        {"a": ends, "b": t},
        F.binary_cross_entropy(ends, t, reduction="none"),
    )
    big = torch.tensor([1000.0, -1000.0, 1000.0, -1000.0]).double()
    c.add(
        "bce_with_logits_loss of large values",
        'bce_with_logits_loss(a, b, reduction="none")',
        {"a": big, "b": t},
        F.binary_cross_entropy_with_logits(big, t, reduction="none"),
    )
    w = c.data.uniform(5, lo=0.5, hi=3)
    c.add(
        "bce_with_logits_loss pos_weight",
        "bce_with_logits_loss(a, b, pos_weight=w)",
        {"a": x, "b": q, "w": w},
        F.binary_cross_entropy_with_logits(x, q, pos_weight=w),
    )
    v = c.data.uniform(4, 5, lo=0.1, hi=2)
    c.add(
        "gaussian_nll_loss",
        "gaussian_nll_loss(a, b, v)",
        {"a": x, "b": y, "v": v},
        F.gaussian_nll_loss(x, y, v),
    )
    c.add(
        "margin_ranking_loss",
        "margin_ranking_loss(a, b, t, margin=0.5)",
        {"a": x, "b": y, "t": sign},
        F.margin_ranking_loss(x, y, sign, margin=0.5),
    )
    hard = c.data.ints(4, 5, lo=0, hi=2).double()
    c.add("focal_loss", "focal_loss(a, b)", {"a": x, "b": hard}, focal(x, hard))
    similarity(c, x, y, z)
    classes(c)
    alignments(c)
    return c


def alignments(c):
    lp = F.log_softmax(c.data.normal(7, 5, 4, scale=2), -1)
    t = torch.tensor([[1, 2, 3], [1, 1, 2], [3, 3, 3], [2, 1, 1], [1, 3, 2]])
    steps, length = torch.tensor([7, 6, 5, 1, 7]), torch.tensor([3, 3, 3, 0, 1])
    inputs = {"x": lp, "t": t, "n": steps, "m": length}
    for reduction in ("mean", "sum", "none"):
        text = f'ctc_loss(x, t, n, m, reduction="{reduction}")'
        c.add(text, text, inputs, F.ctc_loss(lp, t, steps, length, reduction=reduction), tol=1e-11)
    text = 'ctc_loss(x, t, n, m, blank=3, reduction="none")'
    other = {**inputs, "t": t - 1}
    c.add(text, text, other, F.ctc_loss(lp, t - 1, steps, length, blank=3, reduction="none"), tol=1e-11)
    short = {**inputs, "n": torch.tensor([2, 3, 4, 1, 7])}  # no alignment spells three classes in two steps, nor equal neighbours without a blank
    for zero in (False, True):
        text = f'ctc_loss(x, t, n, m, reduction="none", zero_infinity={str(zero).lower()})'
        c.add(f"{text} of too few steps", text, short, F.ctc_loss(lp, t, short["n"], length, reduction="none", zero_infinity=zero), tol=1e-11)


def finish(x, reduction):
    return {"mean": x.mean, "sum": x.sum, "none": lambda: x}[reduction]()


def focal(x, t, alpha=0.25, gamma=2.0):
    """As torchvision.ops.sigmoid_focal_loss."""
    p = torch.sigmoid(x)
    ce = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    p_t = p * t + (1 - p) * (1 - t)
    return (alpha * t + (1 - alpha) * (1 - t)) * ce * (1 - p_t) ** gamma


def similarity(c, x, y, z):
    for axis in (0, 1, -1):
        c.add(
            f"cosine_similarity axis={axis}",
            f"cosine_similarity(a, b, axis={axis})",
            {"a": x, "b": y},
            F.cosine_similarity(x, y, axis),
        )
    t = torch.tensor([1.0, -1.0, -1.0, 1.0]).double()
    c.add(
        "cosine_embedding_loss",
        "cosine_embedding_loss(a, b, t, margin=0.1)",
        {"a": x, "b": y, "t": t},
        F.cosine_embedding_loss(x, y, t, margin=0.1),
        tol=1e-9,
    )
    for p in (2.0, 1.0, 3.0):
        c.add(
            f"pairwise_distance p={p}",
            f"pairwise_distance(a, b, p={p})",
            {"a": x, "b": y},
            F.pairwise_distance(x, y, p),
        )
    for args, swap in (("", False), (", margin=0.3, swap=true", True)):
        c.add(
            f"triplet_margin_loss{args}",
            f"triplet_margin_loss(a, b, c{args})",
            {"a": x, "b": y, "c": z},
            F.triplet_margin_loss(x, y, z, margin=0.3 if swap else 1.0, swap=swap),
        )


def classes(c):
    x = c.data.normal(6, 7, scale=2)
    t = c.data.ints(6, lo=0, hi=7)
    ignored = t.clone()
    ignored[1], ignored[4] = -100, -100
    weight = c.data.uniform(7, lo=0.5, hi=2)
    logp = F.log_softmax(x, -1)
    soft = F.softmax(c.data.normal(6, 7), -1)
    for reduction in ("mean", "sum", "none"):
        tail = f'reduction="{reduction}"'
        for tag, target in (("", t), (" ignored", ignored)):
            inputs = {"x": x, "t": target}
            weighted = {**inputs, "w": weight}
            f = lambda **k: F.cross_entropy(x, target, reduction=reduction, **k)
            c.add(f"cross_entropy{tag} {reduction}", f"cross_entropy(x, t, {tail})", inputs, f())
            c.add(
                f"cross_entropy smoothed{tag} {reduction}",
                f"cross_entropy(x, t, label_smoothing=0.1, {tail})",
                inputs,
                f(label_smoothing=0.1),
            )
            c.add(
                f"cross_entropy weighted{tag} {reduction}",
                f"cross_entropy(x, t, w, {tail})",
                weighted,
                f(weight=weight),
            )
            c.add(
                f"cross_entropy weighted smoothed{tag} {reduction}",
                f"cross_entropy(x, t, w, label_smoothing=0.2, {tail})",
                weighted,
                f(weight=weight, label_smoothing=0.2),
            )
            nll = lambda **k: F.nll_loss(logp, target, reduction=reduction, **k)
            c.add(f"nll_loss{tag} {reduction}", f"nll_loss(x, t, {tail})", {"x": logp, "t": target}, nll())
            c.add(
                f"nll_loss weighted{tag} {reduction}",
                f"nll_loss(x, t, w, {tail})",
                {"x": logp, "t": target, "w": weight},
                nll(weight=weight),
            )
        c.add(
            f"cross_entropy ignore_index {reduction}",
            f"cross_entropy(x, t, ignore_index=3, {tail})",
            {"x": x, "t": t},
            F.cross_entropy(x, t, ignore_index=3, reduction=reduction),
        )
        c.add(
            f"soft_cross_entropy {reduction}",
            f"soft_cross_entropy(x, t, {tail})",
            {"x": x, "t": soft},
            F.cross_entropy(x, soft, reduction=reduction),
        )
        c.add(
            f"soft_cross_entropy smoothed {reduction}",
            f"soft_cross_entropy(x, t, label_smoothing=0.1, {tail})",
            {"x": x, "t": soft},
            F.cross_entropy(x, soft, reduction=reduction, label_smoothing=0.1),
        )
    c.add(
        "cross_entropy of one row", "cross_entropy(x, t)", {"x": x[0], "t": t[0]}, F.cross_entropy(x[0], t[0])
    )
    batch, bt = c.data.normal(2, 3, 5), c.data.ints(2, 3, lo=0, hi=5)
    c.add(
        "cross_entropy of leading axes",
        "cross_entropy(x, t)",
        {"x": batch, "t": bt},
        F.cross_entropy(batch.reshape(6, 5), bt.reshape(6)),
    )
    c.add(
        "cross_entropy i32 target, symbolic",
        "cross_entropy(x, t)",
        {"x": x, "t": t.to(torch.int32)},
        F.cross_entropy(x, t),
        dims={"x": "N, V", "t": "N"},
    )
    masked = x.clone()
    masked[0, (t[0] + 1) % 7] = -INF
    masked[1, t[1]] = -INF
    c.add(
        "cross_entropy of -inf logits",
        'cross_entropy(x, t, reduction="none")',
        {"x": masked, "t": t},
        F.cross_entropy(masked, t, reduction="none"),
    )
    half = x.to(torch.bfloat16)
    c.add(
        "cross_entropy of bf16",
        'cross_entropy(x, t, reduction="none")',
        {"x": half, "t": t},
        F.cross_entropy(half.double(), t, reduction="none").to(torch.bfloat16),
        tol=2**-7,
    )
