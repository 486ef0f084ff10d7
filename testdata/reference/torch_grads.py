"""Gradients of PyTorch, for TestGradientsOfTorch of ir/grad:

    python3 testdata/reference/torch_grads.py testdata/torch_grads.json

Each case is a graph g in fusec's language and the same function in PyTorch, both in f64. The
inputs and the adjoints of the results are not stored: they follow from the formula of unit().
What is stored are the gradients by all float inputs that are not constant, and for functions that
are not linear the products of the Hessian with a vector, where PyTorch has them. A case that fails
is named on stderr and left out; the others are written, and the exit code is 1.
"""

import json
import math
import sys
import traceback

import torch
import torch.nn.functional as F

CASES = []
MASK = 0xFFFFFFFF
WEIGHTS, DIRECTION = 100, 200  # numbers of the adjoints of results and of the vector
SINGLE = {"celu(x, alpha=0.8)", "hardsigmoid(3 * x)"}  # whose derivatives PyTorch computes with constants in f32


def unit(case, tensor, element):
    """A number in [0, 1) for an element of a tensor of a case."""
    h = (case * 0x9E3779B1 + tensor * 0x85EBCA77 + element * 0xC2B2AE3D + 1) & MASK
    h = ((h ^ h >> 16) * 0x7FEB352D) & MASK
    h = ((h ^ h >> 15) * 0x846CA68B) & MASK
    return (h ^ h >> 16) / 4294967296


def floats(case, number, shape, lo, hi):
    values = [lo + (hi - lo) * unit(case, number, i) for i in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def ints(case, number, shape, below):
    values = [int(unit(case, number, i) * below) for i in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.int64).reshape(shape)


class Tensor:
    """An input: floats between lo and hi, or integers from 0 to below - 1.

    By constant floats nothing is differentiated: PyTorch cannot do it for the targets and weights
    of some losses.
    """

    def __init__(self, *shape, lo=-2.0, hi=2.0, below=0, constant=False):
        self.shape, self.lo, self.hi, self.below, self.constant = shape, lo, hi, below, constant

    def type(self):
        return f"{'i64' if self.below else 'f64'}[{', '.join(map(str, self.shape))}]"

    def make(self, case, number):
        if self.below:
            return ints(case, number, self.shape, self.below)
        return floats(case, number, self.shape, self.lo, self.hi).requires_grad_(not self.constant)

    def spec(self, name):
        out = {"name": name, "shape": list(self.shape)}
        if self.below:
            return out | {"below": self.below}
        return out | {"lo": self.lo, "hi": self.hi, "constant": self.constant}


def case(name, body, function, **inputs):
    """One case: body defines y, and function(*inputs) is y in PyTorch."""
    CASES.append((name, body, function, inputs))


def X(*shape, **args):
    return Tensor(*(shape or (3, 5)), **args)


def positive(*shape, **args):
    return Tensor(*(shape or (3, 5)), lo=0.2, hi=2.0, **args)


def pointwise():
    for name, f in {
        "relu(x)": F.relu, "relu6(4 * x)": lambda x: F.relu6(4 * x), "leaky_relu(x)": F.leaky_relu, "elu(x, alpha=0.7)": lambda x: F.elu(x, 0.7),
        "selu(x)": F.selu, "celu(x, alpha=0.8)": lambda x: F.celu(x, 0.8), "gelu(x)": F.gelu,
        "gelu_tanh(x)": lambda x: F.gelu(x, approximate="tanh"), "sigmoid(x)": torch.sigmoid, "log_sigmoid(x)": F.logsigmoid,
        "silu(x)": F.silu, "mish(x)": F.mish, "softplus(x, beta=1.5)": lambda x: F.softplus(x, beta=1.5), "softsign(x)": F.softsign,
        "tanhshrink(x)": F.tanhshrink, "softshrink(x)": F.softshrink, "hardshrink(x)": F.hardshrink, "hardtanh(x)": F.hardtanh,
        "hardsigmoid(3 * x)": lambda x: F.hardsigmoid(3 * x), "hardswish(3 * x)": lambda x: F.hardswish(3 * x),
        "clamp(x, lo=-0.5, hi=0.7)": lambda x: torch.clamp(x, -0.5, 0.7), "tanh(x) * erf(x) + atan(x)": lambda x: torch.tanh(x) * torch.erf(x) + torch.atan(x),
        "sin(x) * exp2(x) - cos(x) * expm1(x)": lambda x: torch.sin(x) * torch.exp2(x) - torch.cos(x) * torch.expm1(x),
        "asinh(x) + sinh(x) / cosh(x) + abs(x) ** 3": lambda x: torch.asinh(x) + torch.sinh(x) / torch.cosh(x) + torch.abs(x) ** 3,
        "x ** 2 + x ** 3 - 1 / (3 + x) ** 2": lambda x: x**2 + x**3 - 1 / (3 + x) ** 2,
        "where(x > 0, x * x, exp(x))": lambda x: torch.where(x > 0, x * x, torch.exp(x)),
    }.items():
        case(name, f"y = {name}", f, x=X())
    for name, f in {
        "log(x) + sqrt(x) + rsqrt(x)": lambda x: torch.log(x) + torch.sqrt(x) + torch.rsqrt(x),
        "log2(x) * log10(x) + log1p(x)": lambda x: torch.log2(x) * torch.log10(x) + torch.log1p(x),
        "x ** 1.7 + 1.3 ** x + x ** x": lambda x: x**1.7 + 1.3**x + x**x,
    }.items():
        case(name, f"y = {name}", f, x=positive())
    for name, f in {
        "x * z / (x + 5) - max(x, z) * min(x, z + 1)": lambda x, z: x * z / (x + 5) - torch.maximum(x, z) * torch.minimum(x, z + 1),
        "atan2(x, z)": torch.atan2, "logaddexp(x, z)": torch.logaddexp, "xlogy(x, z * z + 1)": lambda x, z: torch.xlogy(x, z * z + 1),
        "silu(x) * z + lerp(x, z, 0.3)": lambda x, z: F.silu(x) * z + torch.lerp(x, z, 0.3),
    }.items():
        case(name, f"y = {name}", f, x=X(), z=X())


def reductions():
    for name, f in {
        "softmax(x)": lambda x: F.softmax(x, -1), "softmax(x, axis=0)": lambda x: F.softmax(x, 0),
        "log_softmax(x)": lambda x: F.log_softmax(x, -1), "logsumexp(x, axis=-1)": lambda x: torch.logsumexp(x, -1),
        "mean(x, axis=0)": lambda x: torch.mean(x, 0), "var(x, axis=-1)": lambda x: torch.var(x, -1), "std(x, axis=0, correction=0)": lambda x: torch.std(x, 0, correction=0),
        "prod(x, axis=-1)": lambda x: torch.prod(x, -1), "max(x, axis=-1)": lambda x: torch.amax(x, -1), "min(x, axis=0)": lambda x: torch.amin(x, 0),
        "l2_norm(x, axis=-1)": lambda x: torch.linalg.vector_norm(x, dim=-1), "norm(x, p=3.0, axis=-1)": lambda x: torch.linalg.vector_norm(x, 3, dim=-1),
        "median(x)": lambda x: torch.median(x, -1).values, "sort(x)": lambda x: torch.sort(x, -1).values,
        "sort(x, axis=0, descending=true)": lambda x: torch.sort(x, 0, descending=True).values, "cumsum(x)": lambda x: torch.cumsum(x, -1),
        "cumprod(x)": lambda x: torch.cumprod(x, -1), "cummax(x)": lambda x: torch.cummax(x, -1).values,
        "logcumsumexp(x)": lambda x: torch.logcumsumexp(x, -1), "x * sum(x * x)": lambda x: x * torch.sum(x * x),
        "rms_norm(x)": lambda x: x / torch.sqrt(torch.mean(x * x, -1, keepdim=True) + 1e-6),
        "normalize(x)": F.normalize, "kthvalue(x, 2)": lambda x: torch.kthvalue(x, 2, -1).values,
    }.items():
        case(name, f"y = {name}", f, x=X())
    case("layer_norm(x, w, b)", "y = layer_norm(x, w, b)", lambda x, w, b: F.layer_norm(x, (5,), w, b), x=X(), w=X(5), b=X(5))
    case("group_norm(x, 2, w, b)", "y = group_norm(x, 2, w, b)", lambda x, w, b: F.group_norm(x, 2, w, b), x=X(2, 4, 3), w=X(4), b=X(4))
    case("batch_norm_train(x, w, b)", "y, mean, variance = batch_norm_train(x, w, b)", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
         x=X(3, 2, 4), w=X(2), b=X(2))
    case("instance_norm(x)", "y = instance_norm(x)", F.instance_norm, x=X(2, 3, 5))
    case("topk(x, 3)", "y, at = topk(x, 3)", lambda x: torch.topk(x, 3).values, x=X(3, 6))


def indices():
    case("x @ z", "y = x @ z", torch.matmul, x=X(3, 4), z=X(4, 5))
    case("bilinear(x, z, w, b)", "y = bilinear(x, z, w, b)", F.bilinear, x=X(3, 2), z=X(3, 4), w=X(5, 2, 4), b=X(5))
    case("cdist(x, z)", "y = cdist(x, z)", torch.cdist, x=X(3, 4), z=X(5, 4))
    case("cosine_similarity(x, z)", "y = cosine_similarity(x, z)", F.cosine_similarity, x=X(), z=X())
    case("embedding(at, x)", "y = embedding(at, x) ** 2", lambda at, x: F.embedding(at, x) ** 2, at=X(7, below=4), x=X(4, 3))
    case("gather(x, at)", "y = exp(gather(x, at))", lambda x, at: torch.exp(torch.gather(x, -1, at)), x=X(3, 5), at=X(3, 4, below=5))
    case("scatter_add(x, at, z)", "y = sin(scatter_add(x, at, z))", lambda x, at, z: torch.sin(torch.scatter_add(x, -1, at, z)),
         x=X(3, 4), at=X(3, 6, below=4), z=X(3, 6))
    case("roll, flip, concat", "y = concat(roll(x, 2), flip(x, axis=0) * x)", lambda x: torch.cat([torch.roll(x, 2, -1), torch.flip(x, [0]) * x], 0), x=X())
    case("tril(x) @ triu(x)", "y = tril(x) @ triu(x)", lambda x: torch.tril(x) @ torch.triu(x), x=X(4, 4))
    case("reflect_pad(x, 2, 1)", "y = reflect_pad(x, 2, 1) ** 2", lambda x: F.pad(x, (2, 1), mode="reflect") ** 2, x=X(3, 5))
    case("unfold(x, 3, 2)", "y = unfold(x * x, 3, 2)", lambda x: (x * x).unfold(-1, 3, 2), x=X(3, 8))
    case("conv1d", "y = conv1d(x, w, b, stride=2, padding=1)", lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1), x=X(2, 3, 7), w=X(4, 3, 3), b=X(4))
    case("conv2d in groups", "y = conv2d(x, w, padding=1, dilation=2, groups=2)", lambda x, w: F.conv2d(x, w, padding=1, dilation=2, groups=2),
         x=X(1, 4, 5, 6), w=X(2, 2, 3, 2))
    case("conv_transpose1d", "y = conv_transpose1d(x, w, stride=2)", lambda x, w: F.conv_transpose1d(x, w, stride=2), x=X(2, 3, 4), w=X(3, 2, 3))
    case("max_pool2d", "y = max_pool2d(x, 2, stride=1)", lambda x: F.max_pool2d(x, 2, stride=1), x=X(1, 2, 4, 5))
    case("avg_pool2d", "y = avg_pool2d(x * x, 2)", lambda x: F.avg_pool2d(x * x, 2), x=X(1, 2, 4, 6))
    case("upsample_bilinear", "y = upsample_bilinear(x * x, 2)",
         lambda x: F.interpolate(x * x, scale_factor=2, mode="bilinear", align_corners=False), x=X(1, 1, 3, 4))


def losses():
    for name, f in {
        "mse_loss(x, z)": F.mse_loss, "l1_loss(x, z)": F.l1_loss, "huber_loss(x, z, delta=0.6)": lambda x, z: F.huber_loss(x, z, delta=0.6),
        "smooth_l1_loss(x, z, beta=0.5)": lambda x, z: F.smooth_l1_loss(x, z, beta=0.5),
        "bce_with_logits_loss(x, z)": F.binary_cross_entropy_with_logits, "poisson_nll_loss(x, z)": F.poisson_nll_loss,
    }.items():
        case(name, f"y = {name}", f, x=X(), z=X())
    case("soft_margin_loss(x, z)", "y = soft_margin_loss(x, z)", F.soft_margin_loss, x=X(), z=X(constant=True))
    case("kl_div(log_softmax(x), softmax(z))", "y = kl_div(log_softmax(x), softmax(z))",
         lambda x, z: F.kl_div(F.log_softmax(x, -1), F.softmax(z, -1)), x=X(), z=X())
    case("cross_entropy(x, at)", "y = cross_entropy(x, at)", F.cross_entropy, x=X(4, 6), at=X(4, below=6))
    case("cross_entropy with weights", "y = cross_entropy(x, at, w, ignore_index=1, label_smoothing=0.1)",
         lambda x, at, w: F.cross_entropy(x, at, w, ignore_index=1, label_smoothing=0.1), x=X(5, 4), at=X(5, below=4), w=positive(4, constant=True))


def networks():
    case("perceptron", """h = gelu(linear(x, w1, b1))
    y = cross_entropy(linear(h, w2, b2), at)""",
         lambda x, w1, b1, w2, b2, at: F.cross_entropy(F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2), at),
         x=X(4, 3), w1=X(6, 3), b1=X(6), w2=X(5, 6), b2=X(5), at=X(4, below=5))
    case("gated perceptron", "y = (silu(rms_norm(x, g) @ w1) * (rms_norm(x, g) @ w3)) @ w2 + x", gated,
         x=X(3, 4), g=X(4), w1=X(4, 6), w3=X(4, 6), w2=X(6, 4))
    case("attention", "y = attention(q, k, v, causal=true)", attend,
         q=X(2, 4, 3), k=X(2, 4, 3), v=X(2, 4, 3))
    case("transformer block", """h = layer_norm(x, g, b)
    a = x + attention(h @ wq, h @ wk, h @ wv, causal=true) @ wo
    y = a + gelu(layer_norm(a, g, b) @ w1) @ w2""", block,
         x=X(4, 3), g=X(3), b=X(3), wq=X(3, 3), wk=X(3, 3), wv=X(3, 3), wo=X(3, 3), w1=X(3, 5), w2=X(5, 3))
    case("convolutions", """h = max_pool2d(relu(conv2d(x, w1, b1, padding=1)), 2)
    y = cross_entropy(linear(flatten(conv2d(h, w2)), w3), at)""", convolutions,
         x=X(2, 1, 6, 6), w1=X(2, 1, 3, 3), b1=X(2), w2=X(3, 2, 2, 2), w3=X(4, 12), at=X(2, below=4))
    case("recurrence", """h = tanh(x[0] @ u)
    for t in 1..4 {
        h = tanh(x[t] @ u + h @ w)
    }
    y = h""", recurrence, x=X(4, 2, 3), u=X(3, 5), w=X(5, 5))
    case("softmax of distances", "y = softmax(-cdist(x, z), axis=-1) @ z", lambda x, z: F.softmax(-torch.cdist(x, z), -1) @ z, x=X(3, 2), z=X(4, 2))
    case("ctc_loss(log_softmax(x), t + 1, n + 5, m)", "y = ctc_loss(log_softmax(x), t + 1, n + 5, m)",
         lambda x, t, n, m: F.ctc_loss(F.log_softmax(x, -1), t + 1, n + 5, m), x=X(6, 3, 4), t=X(3, 2, below=3), n=X(3, below=2), m=X(3, below=3))
    case("quantile(x, 0.3)", "y = quantile(x, 0.3)", lambda x: torch.quantile(x, 0.3, dim=-1), x=X(3, 6))
    case("interpolate bicubic", 'y = interpolate(x, (3, 7), mode="bicubic")', lambda x: F.interpolate(x, (3, 7), mode="bicubic"), x=X(1, 2, 4, 5))
    case("interpolate nearest", "y = interpolate(x, (3, 7))", lambda x: F.interpolate(x, (3, 7)), x=X(1, 2, 4, 5))
    case("interpolate trilinear", 'y = interpolate(x, (3, 7, 2), mode="trilinear", align_corners=true)',
         lambda x: F.interpolate(x, (3, 7, 2), mode="trilinear", align_corners=True), x=X(1, 1, 4, 5, 3))


def gated(x, g, w1, w3, w2):
    h = x / torch.sqrt(torch.mean(x * x, -1, keepdim=True) + 1e-6) * g
    return (F.silu(h @ w1) * (h @ w3)) @ w2 + x


def attend(q, k, v):
    """Causal attention, of operations that can be differentiated twice."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return F.softmax(scores.masked_fill(later, -math.inf), -1) @ v


def block(x, g, b, wq, wk, wv, wo, w1, w2):
    h = F.layer_norm(x, (3,), g, b)
    a = x + attend(h @ wq, h @ wk, h @ wv) @ wo
    return a + F.gelu(F.layer_norm(a, (3,), g, b) @ w1) @ w2


def convolutions(x, w1, b1, w2, w3, at):
    h = F.max_pool2d(F.relu(F.conv2d(x, w1, b1, padding=1)), 2)
    return F.cross_entropy(F.linear(torch.flatten(F.conv2d(h, w2), 1), w3), at)


def recurrence(x, u, w):
    h = torch.tanh(x[0] @ u)
    for t in range(1, 4):
        h = torch.tanh(x[t] @ u + h @ w)
    return h


def text(body, inputs, y):
    params = ", ".join(f"{name}: {t.type()}" for name, t in inputs.items())
    shape = ", ".join(map(str, y.shape))
    return f"graph g({params}) -> (y: f64[{shape}]) {{\n    {body}\n}}\n"


def solved(number, name, body, function, inputs):
    """What is stored of a case."""
    made = [t.make(number, k) for k, t in enumerate(inputs.values())]
    wanted = [t for t in made if t.requires_grad]
    y = function(*made)
    total = y if y.dim() == 0 else (y * floats(number, WEIGHTS, y.shape, -1, 1)).sum()
    grads = gradients(name, total, wanted, create_graph=True)
    if grads is None:
        grads = torch.autograd.grad(total, wanted, allow_unused=True)
    out = {
        "number": number,
        "name": name,
        "single": name in SINGLE,
        "program": text(body, inputs, y),
        "inputs": [t.spec(key) for key, t in inputs.items()],
        "value": y.flatten().tolist(),
        "gradients": [flat(g, t) for g, t in zip(grads, wanted)],
    }
    directions = [floats(number, DIRECTION + k, t.shape, -1, 1) for k, t in enumerate(made) if t.requires_grad]
    product = sum(((g * d).sum() for g, d in zip(grads, directions) if g is not None), torch.zeros((), dtype=torch.float64))
    second = gradients(name, product, wanted) if product.requires_grad else None
    if second is not None and any(h is not None and bool((h != 0).any()) for h in second):
        out["hessian"] = [flat(h, t) for h, t in zip(second, wanted)]
    return out


def gradients(name, total, wanted, **args):
    """The gradients of total; None, with a word on stderr, where PyTorch cannot differentiate twice."""
    try:
        return torch.autograd.grad(total, wanted, allow_unused=True, **args)
    except RuntimeError as e:
        print(f"{name}: no second derivative in PyTorch: {e}", file=sys.stderr)
        return None


def flat(gradient, t):
    """The elements of a gradient by t: zeros where nothing depends on t."""
    return [0.0] * t.numel() if gradient is None else gradient.flatten().tolist()


def main(path):
    for add in (pointwise, reductions, indices, losses, networks):
        add()
    lines, failed = [], []
    for number, c in enumerate(CASES):
        try:
            lines.append(json.dumps(solved(number, *c), allow_nan=False))
        except Exception:
            traceback.print_exc()
            failed.append(c[0])
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(lines), "cases with PyTorch", torch.__version__)
    for name in failed:
        print("failed:", name, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
