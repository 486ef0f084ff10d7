#!/usr/bin/env python3
"""Writes optim.json: optimizers by the formulas of PyTorch's documentation, in Python's own floats.

    python3 testdata/reference/optimizers.py

It needs no packages and shares no code with fusec. Tensors are lists; each case runs several steps, and
the file has the inputs and the results of the last.
"""

import json
import math
import os
import random

draw = random.Random(20)


def normal(*shape):
    if not shape:
        return round(draw.gauss(0, 1), 3)
    return [normal(*shape[1:]) for _ in range(shape[0])]


def flat(x):
    return [v for row in x for v in flat(row)] if isinstance(x, list) else [x]


def shape(x):
    return [len(x)] + shape(x[0]) if isinstance(x, list) else []


def each(f, *lists):
    if isinstance(lists[0], list):
        return [each(f, *row) for row in zip(*lists)]
    return f(*lists)


def sgd(w, g, v, lr, momentum=0.9, decay=0.0, nesterov=False):
    d = each(lambda a, b: a + decay * b, g, w)
    v = each(lambda a, b: momentum * a + b, v, d)
    u = each(lambda a, b: a + momentum * b, d, v) if nesterov else v
    return each(lambda a, b: a - lr * b, w, u), v


def adam(w, g, m, v, lr, step, b1=0.9, b2=0.999, eps=1e-8, decay=0.0, decoupled=False):
    if decoupled:
        w = each(lambda a: a - lr * decay * a, w)
    else:
        g = each(lambda a, b: a + decay * b, g, w)
    m = each(lambda a, b: b1 * a + (1 - b1) * b, m, g)
    v = each(lambda a, b: b2 * a + (1 - b2) * b * b, v, g)
    def one(a, p, q):
        return a - lr / (1 - b1**step) * p / (math.sqrt(q) / math.sqrt(1 - b2**step) + eps)
    return each(one, w, m, v), m, v


def lion(w, g, m, lr, b1=0.9, b2=0.99, decay=0.0):
    def one(a, d, p):
        c = b1 * p + (1 - b1) * d
        return a * (1 - lr * decay) - lr * ((c > 0) - (c < 0))
    return each(one, w, g, m), each(lambda p, d: b2 * p + (1 - b2) * d, m, g)


def matmul(a, b):
    return [[sum(x * y for x, y in zip(row, col)) for col in zip(*b)] for row in a]


def newton_schulz(x, steps=5):
    norm = math.sqrt(sum(v * v for v in flat(x))) + 1e-7
    x = each(lambda v: v / norm, x)
    for _ in range(steps):
        a = matmul(x, [list(col) for col in zip(*x)])
        b = each(lambda p, q: -4.7750 * p + 2.0315 * q, a, matmul(a, a))
        x = each(lambda p, q: 3.4445 * p + q, x, matmul(b, x))
    return x


def muon(w, g, m, lr, momentum=0.95, decay=0.1, nesterov=True):
    m = each(lambda a, b: a + (1 - momentum) * (b - a), m, g)
    d = each(lambda a, b: a + momentum * (b - a), g, m) if nesterov else m
    scale = math.sqrt(max(1, len(w) / len(w[0])))
    return each(lambda a, b: a * (1 - lr * decay) - lr * scale * b, w, newton_schulz(d)), m


def clip(g, limit):
    norm = math.sqrt(sum(v * v for v in flat(g)))
    return each(lambda v: v * min(1.0, limit / (norm + 1e-6)), g)


def cosine(step, warmup, total, peak, floor):
    if step < warmup:
        return peak * step / warmup
    part = min((step - warmup) / (total - warmup), 1)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * part))


cases = []


def tensor(name, value, dtype="f64"):
    return {"name": name, "dtype": dtype, "shape": shape(value), "data": flat(value)}


def type_of(t):
    return f"{t['name']}: {t['dtype']}[{', '.join(map(str, t['shape']))}]"


def case(name, statement, inputs, outputs, tol=1e-11):
    text = f"graph g({', '.join(map(type_of, inputs))}) -> ({', '.join(map(type_of, outputs))}) {{\n    {statement}\n}}\n"
    cases.append({"name": name, "program": text, "tol": tol, "inputs": inputs, "outputs": outputs})


def stepped(name, call, f, moments, size=(3, 4), steps=3, counts=False):
    w, lists, rate = normal(*size), [each(lambda v: 0.0, normal(*size)) for _ in moments], 0.05
    for step in range(1, steps + 1):
        g = normal(*size)
        inputs = [tensor("w", w), tensor("g", g)] + [tensor(n, x) for n, x in zip(moments, lists)] + [tensor("lr", rate)]
        if counts:
            inputs.append(tensor("step", float(step)))
        w, *lists = f(w, g, *lists, rate, *([step] if counts else []))
    names = ["w1"] + [n + "1" for n in moments]
    case(name, f"{', '.join(names)} = {call}", inputs, [tensor(n, x) for n, x in zip(names, [w] + lists)])


stepped("sgd", "sgd(w, g, v, lr)", sgd, ["v"])
stepped("sgd plain", "sgd(w, g, v, lr, momentum=0.0)", lambda w, g, v, r: sgd(w, g, v, r, momentum=0.0), ["v"])
stepped("sgd nesterov", "sgd(w, g, v, lr, momentum=0.8, weight_decay=0.1, nesterov=true)",
        lambda w, g, v, r: sgd(w, g, v, r, 0.8, 0.1, True), ["v"])
stepped("adam", "adam(w, g, m, v, lr, step)", adam, ["m", "v"], counts=True)
stepped("adam decay", "adam(w, g, m, v, lr, step, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.2)",
        lambda w, g, m, v, r, s: adam(w, g, m, v, r, s, 0.8, 0.95, 1e-6, 0.2), ["m", "v"], counts=True)
stepped("adamw", "adamw(w, g, m, v, lr, step)", lambda w, g, m, v, r, s: adam(w, g, m, v, r, s, decay=0.01, decoupled=True),
        ["m", "v"], counts=True)
stepped("lion", "lion(w, g, m, lr, weight_decay=0.1)", lambda w, g, m, r: lion(w, g, m, r, decay=0.1), ["m"])
stepped("muon", "muon(w, g, m, lr)", muon, ["m"], size=(5, 3))
stepped("muon tall", "muon(w, g, m, lr, momentum=0.9, weight_decay=0.0, nesterov=false, tall=true)",
        lambda w, g, m, r: muon(w, g, m, r, 0.9, 0.0, False), ["m"], size=(6, 2))
x = normal(3, 5)
case("newton_schulz", "y = newton_schulz(x)", [tensor("x", x)], [tensor("y", newton_schulz(x))])
for limit in (0.5, 100.0):
    g = normal(4, 3)
    case(f"clip {limit}", f"y = g * clip_factor(sum_squares(g), {limit})", [tensor("g", g)], [tensor("y", clip(g, limit))])
for values, ok in ((normal(3), 1), ([1.0, "NaN", 2.0], 0), (["-Inf", 0.0, 1.0], 0)):
    case("all_finite", "y = i64(all_finite(x))", [tensor("x", values)], [tensor("y", ok, "i64")])
for scale, good, ok, want in ((8.0, 5, 1, (8.0, 6)), (8.0, 9, 1, (16.0, 0)), (8.0, 7, 0, (4.0, 0))):
    case("loss_scale", "a, b = loss_scale(scale, good, ok > 0, interval=10)",
         [tensor("scale", scale), tensor("good", good, "i32"), tensor("ok", ok, "i32")],
         [tensor("a", want[0]), tensor("b", want[1], "i32")])
for step in (1, 9, 10, 11, 55, 100, 150):
    for warmup in (0, 10):
        case("warmup_cosine", f"y = warmup_cosine(step, {warmup}, 100, 0.3, floor=0.03)", [tensor("step", float(step))],
             [tensor("y", cosine(step, warmup, 100, 0.3, 0.03))])

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "optim.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
