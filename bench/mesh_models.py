"""The lines of bench/mesh.py that are more than one product: experts, a Llama block, and attention over keys that ranks
share, each with its peer in PyTorch. All ranks make the whole tensors from one seed and keep their shares, so that
results can be compared with those of a rank alone.
"""
import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs", "mesh")
EXPERTS = os.path.join(os.path.dirname(HERE), "examples", "experts.tk")
EPSILON = 1e-5


class Case:
    """What a line measures. `ours` and `peers` are functions of no arguments; `got` and `want` hold results after
    one call of each."""

    def __init__(self, ours, peers, got, want, single=None, captures=True, one_gpu=False):
        self.ours, self.peers, self.got, self.want = ours, peers, got, want
        self.single, self.captures, self.one_gpu = single, captures, one_gpu


def device():
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def seeded(seed):
    return torch.Generator(device=device()).manual_seed(seed)


def normal(generator, *shape, scale=1.0):
    return (torch.randn(*shape, device=device(), generator=generator) * scale).bfloat16()


def share(tensor, dim, rank, ranks):
    return tensor.chunk(ranks, dim)[rank].contiguous()


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


# --- Experts ------------------------------------------------------------------------------------------------------

class ExpertsPeer:
    """Tokens sorted by expert, all_to_all of counts and rows, torch._grouped_mm twice, and the same way back. The
    sizes of the messages go over the host, as all_to_all_single asks for them."""

    def __init__(self, w, v, experts, ranks):
        # Both factors of torch._grouped_mm lie along the summed index.
        self.w = w.transpose(1, 2).contiguous().transpose(1, 2)
        self.v = v.transpose(1, 2).contiguous().transpose(1, 2)
        self.experts, self.ranks = experts, ranks

    def product(self, rows, matrices, ends):
        if rows.is_cuda:
            return torch._grouped_mm(rows, matrices, offs=ends)
        out, begin = [], 0  # to check the peer without a GPU
        for matrix, end in zip(matrices, ends.tolist()):
            out.append((rows[begin:end].float() @ matrix.float()).bfloat16())
            begin = end
        return torch.cat(out)

    def __call__(self, x, ids, g):
        tokens, top = ids.shape
        flat = ids.reshape(-1).long()
        order = torch.argsort(flat, stable=True)
        counts = torch.bincount(flat, minlength=self.experts)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts)
        per_rank = torch.stack([counts, arriving]).reshape(2, self.ranks, -1)
        sent, received = per_rank.sum(2).tolist()  # waits for the device
        rows = x[order // top]
        there = rows.new_empty(sum(received), x.shape[1])
        dist.all_to_all_single(there, rows, received, sent)
        # Rows arrive by rank and by expert; the products want them by expert.
        local = torch.arange(self.experts // self.ranks, device=x.device).repeat(self.ranks)
        expert = torch.repeat_interleave(local, arriving, output_size=sum(received))
        by_expert = torch.argsort(expert, stable=True)
        ends = per_rank[1].sum(0).cumsum(0).to(torch.int32)
        hidden = torch.nn.functional.silu(self.product(there[by_expert], self.w, ends))
        made = torch.empty_like(there)
        made[by_expert] = self.product(hidden, self.v, ends)
        back = torch.empty_like(rows)
        dist.all_to_all_single(back, made, sent, received)
        own = torch.empty_like(rows)
        own[order] = back
        return (own.view(tokens, top, -1) * g.unsqueeze(-1)).sum(1, dtype=torch.float32).bfloat16()


def experts_case(compile_for, tokens, width=2048, experts=64, hidden=1408, top=6):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    generator = seeded(5)
    x = normal(generator, tokens, width)
    w = normal(generator, experts, width, hidden, scale=width ** -0.5)
    v = normal(generator, experts, hidden, width, scale=hidden ** -0.5)
    logits = torch.randn(tokens, experts, device=device(), generator=generator)
    g, ids = torch.topk(logits.softmax(-1), top)
    x, ids, g = (share(t, 0, rank, ranks) for t in (x, ids.to(torch.int32), g))
    w, v = share(w, 0, rank, ranks), share(v, 0, rank, ranks)
    y = torch.empty_like(x)
    kernel = compile_for(read(EXPERTS), "experts", {"ep": ranks})
    peer = ExpertsPeer(w, v, experts, ranks)
    want = torch.empty_like(x)

    def theirs():
        want.copy_(peer(x, ids, g))
    # The peer's sizes go over the host, so it is no CUDA graph; calls of both are plain.
    return Case(lambda: kernel(x, ids, g, w, v, out=y), {"all_to_all, _grouped_mm": theirs}, y, want, captures=False)


# --- Attention over keys that ranks share -------------------------------------------------------------------------

def attention(q, k, v):
    """Of [rows, heads, size]."""
    q, k, v = (t.transpose(0, 1).unsqueeze(0) for t in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)[0].transpose(0, 1)


def long_case(compile_for, rows, heads=16, groups=16, size=128):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    generator = seeded(7)
    whole = [normal(generator, rows, count, size) for count in (heads, groups, groups)]
    q, k, v = (share(t, 0, rank, ranks) for t in whole)
    text = read(os.path.join(PROGRAMS, "attention.tk"))
    kernel, alone = compile_for(text, "long", {"cp": ranks}), compile_for(text, "long", None)
    o, all_o = torch.empty_like(q), torch.empty_like(whole[0])
    keys, values, want = torch.empty_like(whole[1]), torch.empty_like(whole[2]), torch.empty_like(q)

    def gathered():
        dist.all_gather_into_tensor(keys, k)
        dist.all_gather_into_tensor(values, v)
        want.copy_(attention(q, keys, values))
    return Case(lambda: kernel(q, k, v, out=o), {"NCCL, SDPA": gathered}, o, want,
                single=lambda: alone(*whole, out=all_o), one_gpu=True)


def decode_case(compile_for, rows, sequences=8, heads=32, groups=8, size=128):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    generator = seeded(9)
    q = normal(generator, sequences, heads, size)
    k, v = (normal(generator, sequences, rows, groups, size) for _ in range(2))
    own = [share(t, 1, rank, ranks) for t in (k, v)]
    text = read(os.path.join(PROGRAMS, "attention.tk"))
    kernel, alone = compile_for(text, "decode", {"cp": ranks}), compile_for(text, "decode", None)
    o, want = torch.empty_like(q), torch.empty_like(q)
    return Case(lambda: kernel(q, *own, out=o), {}, o, want, single=lambda: alone(q, k, v, out=want), one_gpu=True)


# --- A block ------------------------------------------------------------------------------------------------------

SIZES = {"width": 4096, "hidden": 14336, "heads": 32, "groups": 8, "size": 128}


class Block:
    """The weights of a block, and a rank's share of them: [inputs, outputs]."""

    def __init__(self, rank, ranks, width, hidden, heads, groups, size):
        generator = seeded(11)
        self.width, self.size = width, size
        self.heads, self.groups = heads // ranks, groups // ranks
        q, k, v = (normal(generator, width, n * size, scale=width ** -0.5) for n in (heads, groups, groups))
        self.qkv = torch.cat([share(t, 1, rank, ranks) for t in (q, k, v)], 1)
        out = normal(generator, heads * size, width, scale=(heads * size) ** -0.5)
        gate, up = (normal(generator, width, hidden, scale=width ** -0.5) for _ in range(2))
        down = normal(generator, hidden, width, scale=hidden ** -0.5)
        self.out, self.down = share(out, 0, rank, ranks), share(down, 0, rank, ranks)
        self.gate, self.up = share(gate, 1, rank, ranks), share(up, 1, rank, ranks)

    def angles(self, positions):
        steps = 500000.0 ** (-torch.arange(0, self.size, 2, device=device(), dtype=torch.float32) / self.size)
        turns = torch.outer(torch.arange(positions, device=device(), dtype=torch.float32), steps)
        return turns.cos().contiguous(), turns.sin().contiguous()


def normed(x):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)).bfloat16()


def turned(x, cosine, sine):
    """Of [..., heads, size], with the angles of [..., 1, size]."""
    a, b = x.chunk(2, -1)
    return x * cosine + torch.cat([-b, a], -1) * sine


def summed(x, group):
    return functional.wait_tensor(functional.all_reduce(x, "sum", group))


def mlp(x, block, group):
    n = normed(x)
    part = (torch.nn.functional.silu(n @ block.gate) * (n @ block.up)) @ block.down
    return x + summed(part, group)


def prefill_peer(block, cosine, sine, group):
    """The rows of all prompts on each rank, and an all-reduce behind either half of the block."""
    wide = [torch.cat([t, t], -1).bfloat16()[:, None] for t in (cosine, sine)]

    def run(x):
        rows = (normed(x) @ block.qkv).unflatten(-1, (-1, block.size))
        q, k, v = rows.split([block.heads, block.groups, block.groups], 2)
        q, k, v = (t.transpose(1, 2) for t in (turned(q, *wide), turned(k, *wide), v))
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + summed(o.transpose(1, 2).flatten(2) @ block.out, group)
        return mlp(x, block, group)
    return run


def scattered_peer(block, cosine, sine, group, ranks):
    """The same with shares of the rows between the products: all-gather before, reduce-scatter behind them. Shares
    are of the positions, so that prompts stay whole."""
    wide = [torch.cat([t, t], -1).bfloat16()[:, None] for t in (cosine, sine)]

    def gathered(x):  # [prompts, rows, width], of which the rows are shared
        flat = functional.wait_tensor(functional.all_gather_tensor(x.transpose(0, 1).contiguous(), 0, group))
        return flat.transpose(0, 1)

    def scattered(part):
        flat = functional.reduce_scatter_tensor(part.transpose(0, 1).contiguous(), "sum", 0, group)
        return functional.wait_tensor(flat).transpose(0, 1)

    def run(x):
        rows = (gathered(normed(x)) @ block.qkv).unflatten(-1, (-1, block.size))
        q, k, v = rows.split([block.heads, block.groups, block.groups], 2)
        q, k, v = (t.transpose(1, 2) for t in (turned(q, *wide), turned(k, *wide), v))
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + scattered(o.transpose(1, 2).flatten(2) @ block.out)
        n = gathered(normed(x))
        return x + scattered((torch.nn.functional.silu(n @ block.gate) * (n @ block.up)) @ block.down)
    return run


def compiled(function):
    if not torch.cuda.is_available():
        return function
    return torch.compile(function, dynamic=False)


def block_case(compile_for, length, prompts=4, sizes=None):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    block = Block(rank, ranks, **(sizes or SIZES))
    cosine, sine = block.angles(length)
    text, rows, width = read(os.path.join(PROGRAMS, "block.tk")), prompts * length, block.width
    heads, hidden, project = (compile_for(text, name, {"tp": ranks}) for name in ("heads", "hidden", "project"))
    rope, attend = (compile_for(text, name, None) for name in ("rope", "attend"))
    x = normal(seeded(13), prompts, length, width)
    own = share(x.view(rows, width), 0, rank, ranks)
    first = normed(own)  # the block before leaves its rows normed, as this one does
    made = torch.empty_like(own), torch.empty_like(own)
    done = torch.empty_like(own), torch.empty_like(own)
    y = torch.empty(rows, block.qkv.shape[1], dtype=x.dtype, device=x.device)
    views = [torch.empty(prompts, length, n, block.size, dtype=x.dtype, device=x.device)
             for n in (block.heads, block.groups, block.groups)]
    o = torch.empty_like(views[0])
    h = torch.empty(rows, block.gate.shape[1], dtype=x.dtype, device=x.device)

    def ours():
        heads(first, block.qkv, out=y)
        rope(y.view(prompts, length, -1, block.size), cosine, sine, block.groups, out=views)
        attend(*views, out=o)
        project(o.view(rows, -1), block.out, own, EPSILON, out=made)
        hidden(made[1], block.gate, block.up, out=h)
        project(h, block.down, made[0], EPSILON, out=done)
    group = dist.group.WORLD
    reduced = compiled(prefill_peer(block, cosine, sine, group))
    scattered = compiled(scattered_peer(block, cosine, sine, group, ranks))
    shared = share(x, 1, rank, ranks)
    want = torch.empty_like(own)

    def all_reduced():
        want.copy_(share(reduced(x).view(rows, width), 0, rank, ranks))
    return Case(ours, {"all-reduce": all_reduced, "scattered rows": lambda: scattered(shared)}, done[0], want)


def block_decode_case(compile_for, sequences, length=4096, sizes=None):
    """One token of each sequence, with a cache that is not appended to."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    block = Block(rank, ranks, **(sizes or SIZES))
    cosine, sine = block.angles(length)
    text, width = read(os.path.join(PROGRAMS, "block.tk")), block.width
    own_heads, own_hidden = (compile_for(text, name, None) for name in ("own_heads", "own_hidden"))
    rope, attend = (compile_for(text, name, None) for name in ("rope_one", "attend_one"))
    reduce = compile_for(text, "reduce", {"tp": ranks})
    generator = seeded(17)
    x = normal(generator, sequences, width)
    position = torch.full((sequences,), length - 1, dtype=torch.int32, device=x.device)
    caches = [share(normal(generator, sequences, length, block.groups * ranks, block.size), 2, rank, ranks)
              for _ in range(2)]
    first, like = normed(x), torch.empty_like
    y = torch.empty(sequences, block.qkv.shape[1], dtype=x.dtype, device=x.device)
    q, k = (torch.empty(sequences, n, block.size, dtype=x.dtype, device=x.device)
            for n in (block.heads, block.groups))
    o, h = like(q), torch.empty(sequences, block.gate.shape[1], dtype=x.dtype, device=x.device)
    made, done = (like(x), like(x)), (like(x), like(x))

    def ours():
        own_heads(first, block.qkv, out=y)
        rope(y.view(sequences, -1, block.size), position, cosine, sine, block.groups, out=[q, k])
        attend(q, *caches, out=o)
        reduce(o.view(sequences, -1), block.out, x, EPSILON, out=made)
        own_hidden(made[1], block.gate, block.up, out=h)
        reduce(h, block.down, made[0], EPSILON, out=done)
    group = dist.group.WORLD
    wide = [torch.cat([t, t], -1).bfloat16() for t in (cosine, sine)]
    keys, values = (t.transpose(1, 2).contiguous() for t in caches)  # as the attention of PyTorch likes them
    key = torch.empty_like(k)

    def peer(x):
        rows = (normed(x) @ block.qkv).unflatten(-1, (-1, block.size))
        q, k, _ = rows.split([block.heads, block.groups, block.groups], 1)
        angles = [t[position.long()][:, None] for t in wide]
        key.copy_(turned(k, *angles))
        q = turned(q, *angles).unsqueeze(2)
        o = torch.nn.functional.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
        x = x + summed(o.flatten(1) @ block.out, group)
        return mlp(x, block, group)
    fast, want = compiled(peer), torch.empty_like(x)

    def theirs():
        want.copy_(fast(x))
    return Case(ours, {"all-reduce": theirs}, done[0], want)


SMALL = {"width": 64, "hidden": 96, "heads": 4, "groups": 2, "size": 16}
# Names, cases, their sizes, and those that show that results are right.
LINES = [
    ("attention, 32k shared keys", long_case, {"rows": 32768}, {"rows": 64, "heads": 2, "groups": 2, "size": 16}),
    ("decode, 8 x 32k shared keys", decode_case, {"rows": 32768},
     {"rows": 64, "sequences": 2, "heads": 4, "groups": 2, "size": 16}),
    ("experts, 64, top 6", experts_case, {"tokens": 8192},
     {"tokens": 32, "width": 16, "experts": 8, "hidden": 24, "top": 2}),
    ("Llama block, 4 x 4096", block_case, {"length": 4096}, {"length": 16, "prompts": 2, "sizes": SMALL}),
    ("Llama block, decode of 8", block_decode_case, {"sequences": 8},
     {"sequences": 4, "length": 32, "sizes": SMALL}),
]
