"""The decoder on tk's kernels: the twin of src/*.cpp."""

import contextlib
import os

import numpy as np

import tk
from checkpoint import Checkpoint, rope_table

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kernels")


class Kernels:
    """The kernels by name, from the folder's text or from bundles that `tkc build` made."""

    def __init__(self, target=None, bundles=None):
        for name in ("llama", "sample"):
            if bundles:
                module = tk.load_bundle(os.path.join(bundles, name + ".tkb"))
            else:
                module = tk.compile_file(os.path.join(KERNELS, name + ".tk"), target=target)
            for kernel in module.kernels:
                setattr(self, kernel, module[kernel])
            self.module_target = module.target

    @contextlib.contextmanager
    def preparing(self):
        """Inside, calls reserve what a capture of them needs, and launch nothing."""
        kernels = {name: value for name, value in vars(self).items() if isinstance(value, tk.Kernel)}
        vars(self).update((name, kernel.prepare) for name, kernel in kernels.items())
        try:
            yield
        finally:
            vars(self).update(kernels)


class Weights:
    """Matrices are [outputs, inputs]; each norm is multiplied into the matrices that follow it."""

    def __init__(self, arrays, kernels, config):
        c = config
        self._arrays, self._kernels, self._config = arrays, kernels, config
        self.rows = [c.heads * c.head_size, c.key_heads * c.head_size, c.key_heads * c.head_size]
        self.shapes = {
            "qkv": (sum(self.rows), c.width),
            "out": (c.width, c.heads * c.head_size),
            "gate": (c.intermediate, c.width),
            "up": (c.intermediate, c.width),
            "down": (c.width, c.intermediate),
        }

    def fill(self, seed):
        """Uniform weights: the same on every target."""
        number = 0

        def matrix(shape, gain, inputs):
            nonlocal number
            tensor, count = self._arrays.bf16(*shape), shape[0] * shape[1]
            scale = gain * np.sqrt(3.0 / inputs)
            self._kernels.random_weights(seed, number << 40, scale, count, out=tensor.reshape(count))
            number += 1
            return tensor

        c = self._config
        self.embedding = matrix((c.vocabulary, c.width), 1, 1)
        self.head = matrix((c.vocabulary, c.width), 4, c.width)
        self.layers = [
            {name: matrix(shape, 1, shape[1]) for name, shape in self.shapes.items()} for _ in range(c.layers)
        ]
        return self

    def load(self, folder):
        """All safetensors files of a folder."""
        c, checkpoint = self._config, Checkpoint(folder)

        def matrix(name, shape):
            return self._arrays.bf16(bits=checkpoint.bf16(name, shape))

        def scale(name, *matrices):
            gamma = self._arrays.bf16(bits=checkpoint.bf16(name, (c.width,)))
            for tensor in matrices:
                self._kernels.scale_columns(gamma, tensor)

        embedding, head = "model.embed_tokens.weight", "lm_head.weight"
        has_head = not c.tied_embeddings and head in checkpoint
        self.embedding = matrix(embedding, (c.vocabulary, c.width))
        self.head = matrix(head if has_head else embedding, (c.vocabulary, c.width))
        scale("model.norm.weight", self.head)
        self.layers = []
        for i in range(c.layers):
            name = f"model.layers.{i}."
            parts = [
                checkpoint.bf16(f"{name}self_attn.{part}_proj.weight", (rows, c.width))
                for part, rows in zip("qkv", self.rows)
            ]
            layer = {"qkv": self._arrays.bf16(bits=np.concatenate(parts))}
            layer["out"] = matrix(name + "self_attn.o_proj.weight", self.shapes["out"])
            for part in ("gate", "up", "down"):
                layer[part] = matrix(f"{name}mlp.{part}_proj.weight", self.shapes[part])
            scale(name + "input_layernorm.weight", layer["qkv"])
            scale(name + "post_attention_layernorm.weight", layer["gate"], layer["up"])
            self.layers.append(layer)
        return self


class Cache:
    """The paged cache. The first page of each slot is open: decoding writes its newest row there, and a page that
    is full is copied to a closed one."""

    def __init__(self, arrays, kernels, config, slots, page, context):
        self.slots, self.page, self.context = slots, page, context
        self.blocks = self.pages_for(context)
        pages = slots * (1 + self.blocks)
        shape = (2 * config.layers, pages, page, config.key_heads, config.head_size)
        self.pools = arrays.bf16(*shape)
        self.table = arrays.array(np.zeros((slots, self.blocks)), np.int32)
        self._arrays, self._kernels = arrays, kernels
        self._row = (config.key_heads, config.head_size)
        self._host_table = np.repeat(np.arange(slots, dtype=np.int32)[:, None], self.blocks, axis=1)
        self._is_used = np.arange(pages) < slots

    def pages_for(self, tokens):
        return -(-tokens // self.page)

    def rows(self, pool, first, count):
        """Neighbouring pages as rows of tokens."""
        return self.pools[pool, first : first + count].reshape(count * self.page, *self._row)

    def take(self, count):
        """The first of `count` neighbouring pages that are free."""
        run = 0
        for page, used in enumerate(self._is_used):
            run = 0 if used else run + 1
            if run == count:
                self._is_used[page + 1 - count : page + 1] = True
                return page + 1 - count
        raise MemoryError(f"the cache has no {count} neighbouring free pages")

    def _copy_page(self, source, target):
        # Views of all pools at once would interleave, which a checked launch refuses.
        for pool in range(self.pools.shape[0]):
            page = self.pools[pool, source].reshape(1, -1)
            self._kernels.copy_page(page, out=self.pools[pool, target].reshape(1, -1))

    def adopt(self, slot, first, length):
        """A prefill wrote a prompt to pages from `first` on."""
        blocks = self.pages_for(length)
        self._host_table[slot, :blocks] = np.arange(first, first + blocks)
        if length % self.page:
            self._copy_page(first + blocks - 1, slot)
            self._is_used[first + blocks - 1] = False
            self._host_table[slot, blocks - 1] = slot

    def make_room(self, slot, position):
        """Closes the open page if the position begins a new one."""
        if position >= self.context:
            raise ValueError(f"a sequence is longer than the context of {self.context} tokens")
        block = position // self.page
        if position % self.page:
            return
        if block > 0 and self._host_table[slot, block - 1] == slot:
            closed = self.take(1)
            self._copy_page(slot, closed)
            self._host_table[slot, block - 1] = closed
        self._host_table[slot, block] = slot

    def clear(self):
        """Gives back all pages."""
        self._host_table[:] = np.arange(self.slots)[:, None]
        self._is_used[self.slots :] = False

    def upload_table(self):
        self._arrays.write(self.table, self._host_table)


class Sampler:
    """Greedy without a temperature, else top-p; sequence i has the seed plus i."""

    def __init__(self, arrays, kernels, slots, temperature=None, top=0.9, seed=0):
        if temperature is not None and not temperature > 0:
            raise ValueError("expected a temperature above 0")
        if not 0 < top <= 1:
            raise ValueError("expected a sum of probabilities in (0, 1]")
        self._kernels, self._temperature, self._top = kernels, temperature, top
        self._seeds = arrays.array(seed + np.arange(slots), np.int64)

    def choose(self, logits, position, token):
        if self._temperature is None:
            self._kernels.greedy(logits, out=token)
        else:
            self._kernels.top_p(logits, self._seeds, position, self._temperature, self._top, out=token)


NUM_PARTS = 2  # into which a decode step cuts the sums of a product


class Activations:
    """The tensors between the kernels of a layer."""

    def __init__(self, arrays, config, rows):
        c, self.rows = config, rows
        self.x = arrays.bf16(rows, c.width)
        self.scale = arrays.array(np.zeros(rows), np.float32)
        self.qkv = arrays.bf16(rows, c.heads + 2 * c.key_heads, c.head_size)
        self.q = arrays.bf16(rows, c.heads, c.head_size)
        self.attention = arrays.bf16(rows, c.heads, c.head_size)
        self.hidden = arrays.bf16(rows, c.intermediate)


class StepActivations(Activations):
    """Those of a decode step, whose `scale` is 1."""

    def __init__(self, arrays, config, slots):
        super().__init__(arrays, config, slots)
        self.scale = arrays.array(np.ones(slots), np.float32)
        self.y = arrays.bf16(slots, config.width)
        self.parts = arrays.array(np.zeros((NUM_PARTS, slots, config.width)), np.float32)


class Model:
    def __init__(self, arrays, kernels, config, weights, sampler, slots, page, context):
        self.kernels, self.config, self.weights, self.sampler = kernels, config, weights, sampler
        self.cache = Cache(arrays, kernels, config, slots, page, context)
        cosine, sine = rope_table(config, context)
        self._arrays, self._slots = arrays, slots
        self._cosine, self._sine = arrays.array(cosine, np.float32), arrays.array(sine, np.float32)
        self._token = arrays.array(np.zeros(slots), np.int32)
        self._position = arrays.array(np.full(slots, -1), np.int32)
        self._logits = arrays.array(np.zeros((slots, config.vocabulary)), np.float32)
        self._rows = StepActivations(arrays, config, slots)
        self._replay, self._num_steps, self._positions = None, 0, []

    def _prefill_layer(self, index, a, attend):
        k, w, epsilon = self.kernels, self.weights.layers[index], self.config.norm_epsilon
        k.qkv(a.x, a.scale, w["qkv"], out=a.qkv.reshape(a.rows, -1))
        attend(index)
        k.project(a.attention.reshape(a.rows, -1), w["out"], a.x, epsilon, out=a.scale)
        k.gate_up(a.x, a.scale, w["gate"], w["up"], out=a.hidden)
        k.project(a.hidden, w["down"], a.x, epsilon, out=a.scale)

    def _decode_layer(self, index):
        k, w, a = self.kernels, self.weights.layers[index], self._rows
        k.qkv(a.y, a.scale, w["qkv"], out=a.qkv.reshape(a.rows, -1))
        self._attend_pages(index)
        self._project(a.attention, w["out"])
        k.gate_up(a.y, a.scale, w["gate"], w["up"], out=a.hidden)
        self._project(a.hidden, w["down"])

    def _project(self, rows, matrix):
        """Adds a product to the residual stream, and normalises it."""
        k, a, (width, terms) = self.kernels, self._rows, matrix.shape
        count = NUM_PARTS if terms % NUM_PARTS == 0 else 1
        parts = a.parts[:count]
        k.project_parts(rows.reshape(a.rows, count, -1), matrix.reshape(width, count, -1), out=parts)
        k.add_parts(parts, a.x, self.config.norm_epsilon, out=a.y)

    def _choose(self):
        a = self._rows
        self.kernels.logits(a.y, a.scale, self.weights.head, out=self._logits)
        self.sampler.choose(self._logits, self._position, self._token)
        self.kernels.advance(self._position)

    def _check(self, prompts):
        if len(prompts) != self._slots:
            raise ValueError(f"expected {self._slots} prompts, got {len(prompts)}")
        for i, prompt in enumerate(prompts):
            if not 0 < len(prompt) <= self.cache.context:
                raise ValueError(f"prompt {i} has {len(prompt)} tokens; expected 1 to {self.cache.context}")
            for token in prompt:
                if not 0 <= token < self.config.vocabulary:
                    size = self.config.vocabulary
                    raise ValueError(f"prompt {i}: token {token} is outside of the vocabulary of {size}")

    def prefill(self, prompts):
        """Runs prompts, one a slot, and returns the first token after each. What slots had before is dropped."""
        self._check(prompts)
        cache, k, arrays = self.cache, self.kernels, self._arrays
        cache.clear()
        lengths = [len(prompt) for prompt in prompts]
        rows = [cache.pages_for(length) * cache.page for length in lengths]
        starts = np.cumsum([0] + rows[:-1])
        packed = [list(prompt) + [0] * (n - len(prompt)) for prompt, n in zip(prompts, rows)]
        token = arrays.array(np.concatenate(packed), np.int32)
        position = arrays.array(np.concatenate([np.arange(n) for n in rows]), np.int32)
        first = arrays.array(np.repeat(starts, rows), np.int32)
        last = arrays.array(starts + np.array(lengths) - 1, np.int32)
        pages = sum(rows) // cache.page
        page = cache.take(pages)
        a = Activations(arrays, self.config, sum(rows))

        def attend(layer):
            keys, values = cache.rows(2 * layer, page, pages), cache.rows(2 * layer + 1, page, pages)
            heads = self.config.key_heads
            k.rope(a.qkv, position, self._cosine, self._sine, heads, out=(a.q, keys, values))
            k.attention_prefill(a.q, keys, values, first, out=a.attention)

        arrays.write(self._position, np.array(lengths, np.int32) - 1)
        k.embed(token, self.weights.embedding, self.config.norm_epsilon, out=(a.x, a.scale))
        for layer in range(self.config.layers):
            self._prefill_layer(layer, a, attend)
        k.last_rows(a.x, a.scale, last, out=self._rows.y)
        self._choose()
        for slot, (length, n) in enumerate(zip(lengths, rows)):
            cache.adopt(slot, page, length)
            page += n // cache.page
        self._positions = lengths
        return arrays.numpy(self._token).tolist()

    def _attend_pages(self, layer):
        a, k, cache = self._rows, self.kernels, self.cache
        keys, values = cache.pools[2 * layer], cache.pools[2 * layer + 1]
        opened = keys[: self._slots], values[: self._slots]
        k.rope_keep(a.qkv, self._position, self._cosine, self._sine, *opened, out=a.q)
        k.attention_decode(a.q, keys, values, cache.table, self._position, out=a.attention)

    def _step(self):
        a, c = self._rows, self.config
        self.kernels.embed_normed(self._token, self.weights.embedding, c.norm_epsilon, out=(a.x, a.y))
        for layer in range(c.layers):
            self._decode_layer(layer)
        self._choose()

    def decode(self):
        """The next token of each sequence. On a GPU the second step is captured in a CUDA graph."""
        for slot, position in enumerate(self._positions):
            self.cache.make_room(slot, position)
        self.cache.upload_table()
        if self._replay is None and self._num_steps > 0 and self._arrays.has_graphs:
            with self.kernels.preparing():
                self._step()
            self._replay = self._arrays.capture(self._step)
        (self._replay or self._step)()
        self._num_steps += 1
        self._positions = [position + 1 for position in self._positions]
        return self._arrays.numpy(self._token).tolist()
