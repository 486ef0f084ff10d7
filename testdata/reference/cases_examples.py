"""The programs of the examples folder."""

import math

import numpy as np
import scipy.ndimage
import torch
import torch.nn.functional as F

from harness import Cases, tensor

BF16 = torch.bfloat16


def all_cases():
    return [examples()]


class Examples(Cases):
    """Examples are programs of the examples folder; their inputs have symbolic sizes."""

    def run(self, name, inputs, outputs, tol):
        self.cases.append(
            {
                "name": name,
                "program": f"examples/{name}.fuse",
                "tol": tol,
                "inputs": {k: tensor(v) for k, v in inputs.items()},
                "outputs": {k: tensor(v) for k, v in outputs.items()},
            }
        )


def examples():
    c = Examples("examples", 15)
    n = c.data.normal
    half = lambda *shape: n(*shape).to(BF16)
    x, w, b = half(5, 9), half(9), half(9)
    c.run("softmax", {"x": x}, {"y": F.softmax(x.double(), -1).to(BF16)}, 2**-7)
    c.run(
        "layer_norm",
        {"x": x, "weight": w, "bias": b},
        {"y": F.layer_norm(x.double(), (9,), w.double(), b.double()).to(BF16)},
        2**-7,
    )
    rms = x.double() / torch.sqrt((x.double() ** 2).mean(-1, keepdim=True) + 1e-6) * w.double()
    c.run("rms_norm", {"x": x, "weight": w}, {"y": rms.to(BF16)}, 2**-7)
    img, gw, gb = (n(*s).to(torch.float16) for s in ((2, 64, 3, 2), (64,), (64,)))
    c.run(
        "group_norm",
        {"x": img, "weight": gw, "bias": gb},
        {"y": F.group_norm(img.double(), 32, gw.double(), gb.double()).half()},
        2**-9,
    )
    gate = half(5, 9)
    c.run("swiglu", {"x": x, "gate": gate}, {"y": (F.silu(x.double()) * gate.double()).to(BF16)}, 2**-7)
    p, q, r = (n(4, 7).float() for _ in range(3))
    dp, dq, dr = p.double(), q.double(), r.double()
    chain = F.gelu(dp * dq + dr, approximate="tanh") * torch.sigmoid(dr) + dp
    c.run("gelu_chain", {"x": p, "y": q, "z": r}, {"out": chain.float()}, 1e-6)
    ws, bias = n(7).float(), n().float()
    c.run(
        "weighted_sum",
        {"x": p, "w": ws, "b": bias},
        {"y": ((dp * ws.double()).sum(-1) + bias.double()).float()},
        1e-6,
    )
    logits, target = half(6, 11), c.data.ints(6, lo=0, hi=11)
    target[2] = -100
    c.run(
        "cross_entropy",
        {"logits": logits, "target": target},
        {
            "mean_loss": F.cross_entropy(logits.double(), target).float(),
            "loss": F.cross_entropy(logits.double(), target, reduction="none").float(),
        },
        1e-6,
    )
    photo = n(7, 9).float()
    c.run(
        "blur",
        {"img": photo},
        {
            "out": torch.from_numpy(
                scipy.ndimage.uniform_filter(photo.double().numpy(), 3, mode="constant")
            ).float()
        },
        1e-6,
    )
    fx, fw, fb, fr = half(3, 5), half(5, 4), half(4), half(3, 4)
    c.run(
        "ffn",
        {"x": fx, "w": fw, "b": fb, "r": fr},
        {"y": (F.gelu(fx.double() @ fw.double() + fb.double()) + fr.double()).to(BF16)},
        2**-6,
    )
    aq, ak, av = (half(2, 2, 5, 4) for _ in range(3))
    s = (aq.double() @ ak.double().transpose(-1, -2) / 2).masked_fill(
        ~torch.ones(5, 5).tril().bool(), -math.inf
    )
    c.run(
        "attention",
        {"q": aq, "k": ak, "v": av},
        {"out": (torch.softmax(s, -1) @ av.double()).to(BF16)},
        2**-6,
    )
    pixel = ((np.arange(16) - 8) * 1e-4).astype(np.float32)
    c.run("bragg", {"pixel": pixel}, {"intensity": tensor(bragg(pixel.astype(np.float64)), "f32")}, 1e-5)
    return c


def bragg(pixel):
    px, py = pixel[None, :], pixel[:, None]
    r = np.sqrt(px**2 + py**2 + 0.1**2)
    ux, uy, uz = px / r, py / r, 0.1 / r

    def g(t):
        e = t - np.round(t)
        q = np.sin(np.pi * e)
        return np.where(np.abs(q) < 1e-6, 5.0, np.sin(5 * np.pi * e) / np.where(np.abs(q) < 1e-6, 1.0, q))

    total = np.zeros_like(r)
    for k in range(8):
        w = (0.9 + 0.2 * k / 7) * 1e-10
        total += (g(ux * 1e-8 / w) * g(uy * 1e-8 / w) * g((uz - 1) * 1e-8 / w)) ** 2
    return total * (1e-8 * 0.1 / r**3) * (1 + uz**2) / 2
