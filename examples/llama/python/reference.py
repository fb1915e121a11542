"""The model in NumPy: f64, rounded to bf16 where the kernels store bf16. It has no cache: each token is computed from
the whole sequence. `margin` is the least difference between a choice and the next best, `share_margin` the least
distance between a sum of probabilities and top-p's limit."""

import numpy as np

from checkpoint import from_bf16, rope_table, to_bf16


def rounded(x):
    """To bf16 and back."""
    return from_bf16(to_bf16(np.asarray(x, np.float32))).astype(np.float64)


def rand(seed, n):
    """tk's rand: Philox 4x32-10 with the key `seed`; word n % 4 of block n / 4, 24 bits."""
    n = np.asarray(n, np.int64)
    low, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    block = (n >> 2).astype(np.uint64)
    c = [block & mask, block >> low, np.zeros_like(block), np.zeros_like(block)]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> low) ^ c[1] ^ np.uint64(key[0]), b & mask, (a >> low) ^ c[3] ^ np.uint64(key[1]), a & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    words = np.choose(n & 3, c)
    return (words >> np.uint64(8)).astype(np.float64) * 2.0**-24


def random_tensors(config, seed):
    """The weights that the programs make without a checkpoint, by the names of a checkpoint."""
    c, tensors, number = config, {}, 0

    def matrix(rows, columns, gain, inputs):
        nonlocal number
        u = rand(seed, (number << 40) + np.arange(rows * columns)).astype(np.float32)
        number += 1
        return to_bf16((2 * u - 1) * np.float32(gain * np.sqrt(3.0 / inputs))).reshape(rows, columns)

    tensors["model.embed_tokens.weight"] = matrix(c.vocabulary, c.width, 1, 1)
    tensors["lm_head.weight"] = matrix(c.vocabulary, c.width, 4, c.width)
    q_rows, k_rows = c.heads * c.head_size, c.key_heads * c.head_size
    ones = np.full(c.width, to_bf16(np.float32(1)), np.uint16)
    tensors["model.norm.weight"] = ones
    for i in range(c.layers):
        name = f"model.layers.{i}."
        qkv = matrix(q_rows + 2 * k_rows, c.width, 1, c.width)
        for part, at in zip("qkv", np.split(qkv, [q_rows, q_rows + k_rows])):
            tensors[f"{name}self_attn.{part}_proj.weight"] = at
        tensors[name + "self_attn.o_proj.weight"] = matrix(c.width, q_rows, 1, q_rows)
        tensors[name + "mlp.gate_proj.weight"] = matrix(c.intermediate, c.width, 1, c.width)
        tensors[name + "mlp.up_proj.weight"] = matrix(c.intermediate, c.width, 1, c.width)
        tensors[name + "mlp.down_proj.weight"] = matrix(c.width, c.intermediate, 1, c.intermediate)
        tensors[name + "input_layernorm.weight"] = ones
        tensors[name + "post_attention_layernorm.weight"] = ones
    return tensors


class Reference:
    def __init__(self, config, tensors):
        """`tensors` are the bits of bf16, by the names of a checkpoint."""
        self.config, self.margin, self.share_margin = config, np.inf, np.inf
        self._tensors = {name: from_bf16(bits).astype(np.float64) for name, bits in tensors.items()}

    def _scaled(self, name, norm):
        """A matrix with the norm's weights in its columns, rounded as the programs store it."""
        return rounded(self._tensors[name] * self._tensors[norm])

    def _norm(self, x):
        return 1 / np.sqrt((x * x).mean(1, keepdims=True) + self.config.norm_epsilon)

    def _rope(self, x):
        cosine, sine = rope_table(self.config, len(x))
        cosine, sine = cosine[:, None, :].astype(np.float64), sine[:, None, :].astype(np.float64)
        a, b = np.split(x, 2, axis=-1)
        return rounded(np.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1))

    def _attention(self, x, name):
        c, rows = self.config, len(x)
        norm = name + "input_layernorm.weight"
        q, k, v = (
            rounded(self._norm(x) * (x @ self._scaled(f"{name}self_attn.{part}_proj.weight", norm).T))
            for part in "qkv"
        )
        q = self._rope(q.reshape(rows, c.heads, c.head_size))
        k = self._rope(k.reshape(rows, c.key_heads, c.head_size))
        v = v.reshape(rows, c.key_heads, c.head_size)
        k, v = (np.repeat(t, c.heads // c.key_heads, axis=1) for t in (k, v))
        s = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(c.head_size)
        s = np.where(np.tril(np.ones((rows, rows), bool)), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        o = np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v)
        return rounded(o.reshape(rows, -1)) @ self._tensors[name + "self_attn.o_proj.weight"].T

    def _gated(self, x, name):
        norm = name + "post_attention_layernorm.weight"
        gate, up = (
            self._norm(x) * (x @ self._scaled(f"{name}mlp.{part}_proj.weight", norm).T) for part in ("gate", "up")
        )
        hidden = rounded(gate / (1 + np.exp(-gate)) * up)
        return hidden @ self._tensors[name + "mlp.down_proj.weight"].T

    def logits(self, tokens):
        """Of the token after the last one."""
        x = self._tensors["model.embed_tokens.weight"][np.asarray(tokens)]
        for i in range(self.config.layers):
            x = rounded(x + self._attention(x, f"model.layers.{i}."))
            x = rounded(x + self._gated(x, f"model.layers.{i}."))
        last = x[-1:]
        head = "model.embed_tokens.weight" if self.config.tied_embeddings else "lm_head.weight"
        return (self._norm(last) * (last @ self._scaled(head, "model.norm.weight").T))[0]

    def _greatest(self, values):
        """The first greatest element; the one below it counts for the margin."""
        order = np.argsort(-values, kind="stable")
        self.margin = min(self.margin, values[order[0]] - values[order[1]])
        return int(order[0])

    def choose(self, logits, position, temperature, top, seed):
        if temperature is None:
            return self._greatest(logits)
        x = (logits - logits.max()) / temperature
        order = np.argsort(-x, kind="stable")
        before = np.cumsum(np.exp(x[order])) - np.exp(x[order])
        share = before / np.exp(x).sum()
        self.share_margin = min(self.share_margin, np.abs(share - top).min())
        is_kept = np.zeros(len(x), bool)
        is_kept[order] = share < top
        u = rand(seed, position * len(x) + np.arange(len(x)))
        with np.errstate(divide="ignore"):
            noise = -np.log(-np.log(u))
        return self._greatest(np.where(is_kept, x + noise, -np.inf))

    def generate(self, prompt, count, temperature=None, top=0.9, seed=0):
        tokens = list(prompt)
        for _ in range(count):
            logits = self.logits(tokens)
            tokens.append(self.choose(logits, len(tokens) - 1, temperature, top, seed))
            if tokens[-1] in self.config.end_tokens:
                break
        return tokens[len(prompt) :]
