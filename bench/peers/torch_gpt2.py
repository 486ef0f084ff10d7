"""Trains GPT-2's shapes in PyTorch, as examples/train/gpt2 does, and prints what a step takes.

    python3 torch_gpt2.py SIZE BATCH STEPS [eager|compile|max-autotune] [FILE]

Parameters are f32 and products bf16 by autocast, with fused AdamW, as in the usual recipe of
torch.compile; tokens, schedule and clipping are those of the example. FILE has the first
parameters, as the example writes them (-initial FILE). Prints a line of JSON.
"""
import json
import math
import mmap
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

SIZES = {"124M": (12, 768, 12), "355M": (24, 1024, 16), "774M": (36, 1280, 20), "1558M": (48, 1600, 25)}
WORDS, PLACES, USED = 50304, 1024, 251


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.norm2, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(d, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers, d, heads):
        super().__init__()
        self.table, self.places = nn.Embedding(WORDS, d), nn.Embedding(PLACES, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, at, target):
        x = self.table(at) + self.places.weight[None, : at.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.table.weight.t()
        return F.cross_entropy(logits.view(-1, WORDS).float(), target.view(-1))


def batch(step, rows):
    text = []
    for i in range(rows):
        drawn = step * 7919 + i * 104729
        token = drawn % USED
        seen = [token]
        for _ in range(PLACES):
            drawn = (drawn * 1103515245 + 12345) % (1 << 31)
            token = (drawn >> 20) % USED if (drawn >> 16) % 4 == 0 else (token * 6 + 11) % USED
            seen.append(token)
        text.append(seen)
    text = torch.tensor(text).cuda()
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def first_parameters(model, path):
    """Copies the parameters of a .safetensors file, in f32 and by the example's names, to the model."""
    with open(path, "rb") as f:
        memory = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
    size = int.from_bytes(memory[:8], "little")
    entries = json.loads(memory[8 : 8 + size])
    ours = {"weight": "", "bias": "_b"}

    def name(theirs):
        parts = theirs.split(".")
        if parts[0] == "blocks":
            return parts[2] + ours[parts[3]] + "_" + parts[1]
        return "norm3" + ours[parts[1]] if parts[0] == "norm" else parts[0]

    with torch.no_grad():
        for theirs, p in model.named_parameters():
            entry = entries["f_" + name(theirs)]
            first, last = entry["data_offsets"]
            x = torch.frombuffer(memory, dtype=torch.float32, count=(last - first) // 4, offset=8 + size + first).reshape(entry["shape"])
            p.copy_(x.t() if p.dim() == 2 and theirs.startswith("blocks") else x)


def rate(step):
    if step < 20:
        return 6e-4 * step / 20
    return 6e-5 + (6e-4 - 6e-5) / 2 * (1 + math.cos(math.pi * (step - 20) / 980))


def main():
    size, rows, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    mode = sys.argv[4] if len(sys.argv) > 4 else "compile"
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = GPT2(*SIZES[size]).cuda()
    if len(sys.argv) > 5:
        first_parameters(model, sys.argv[5])
    decays = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  betas=(0.9, 0.95), fused=True)
    run = {"eager": lambda m: m, "compile": torch.compile,
           "max-autotune": lambda m: torch.compile(m, mode="max-autotune-no-cudagraphs")}[mode](model)
    losses, times = [], []
    for step in range(1, steps + 1):
        at, target = batch(step, rows)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(at, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        losses.append(round(loss.item(), 6))
    median = sorted(times[steps // 2:])[(steps - steps // 2) // 2]
    print(json.dumps({"size": size, "batch": rows, "mode": mode, "ms": median * 1e3, "tokens/s": rows * PLACES / median,
                      "peak GiB": torch.cuda.max_memory_allocated() / 2**30,
                      "reserved GiB": torch.cuda.max_memory_reserved() / 2**30, "losses": losses}))


if __name__ == "__main__":
    main()
