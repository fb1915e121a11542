"""Checkpoints: config.json, and tensors in the safetensors format (8 bytes with the length of a JSON head, the
head, raw data)."""

import json
import os
from dataclasses import dataclass, field

import numpy as np

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16}


class BadFile(Exception):
    """A file that is not what it claims to be."""


def to_bf16(values):
    """f32 to the bits of bf16, to nearest even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def from_bf16(bits):
    """The bits of bf16 as f32."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


@dataclass
class Config:
    vocabulary: int
    width: int
    intermediate: int
    layers: int
    heads: int
    key_heads: int
    head_size: int
    norm_epsilon: float = 1e-5
    rope_base: float = 500000.0
    rope_factor: float = 1.0
    rope_low: float = 1.0
    rope_high: float = 4.0
    rope_original_context: int = 8192
    tied_embeddings: bool = False
    end_tokens: list = field(default_factory=list)

    @staticmethod
    def read(path):
        try:
            with open(path, encoding="utf-8") as file:
                values = json.load(file)
        except ValueError as error:
            raise BadFile(f"{path}: {error}") from None
        if not isinstance(values, dict) or values.get("model_type") != "llama":
            raise BadFile(f'{path}: expected "model_type": "llama"')
        try:
            return Config._from_values(values)
        except (KeyError, TypeError, ZeroDivisionError) as error:
            raise BadFile(f"{path}: {error!r} is missing or of the wrong type") from None

    @staticmethod
    def _from_values(values):
        heads = values["num_attention_heads"]
        end = values.get("eos_token_id")
        config = Config(
            values["vocab_size"],
            values["hidden_size"],
            values["intermediate_size"],
            values["num_hidden_layers"],
            heads,
            values.get("num_key_value_heads") or heads,
            values.get("head_dim") or values["hidden_size"] // heads,
            values.get("rms_norm_eps", 1e-5),
            values.get("rope_theta", 10000.0),
            tied_embeddings=bool(values.get("tie_word_embeddings")),
            end_tokens=end if isinstance(end, list) else [] if end is None else [end],
        )
        scaling = values.get("rope_scaling")
        if scaling:
            if scaling.get("rope_type") != "llama3":
                raise BadFile("`rope_scaling` is not of type `llama3`")
            config.rope_factor = scaling["factor"]
            config.rope_low = scaling["low_freq_factor"]
            config.rope_high = scaling["high_freq_factor"]
            config.rope_original_context = scaling["original_max_position_embeddings"]
        return config


NAMED = {
    "tiny": Config(320, 64, 160, 2, 4, 2, 16, rope_base=10000.0),
    "8b": Config(128256, 4096, 14336, 32, 32, 8, 128),
}


def rope_table(config, positions):
    """cos and sin of position * frequency, [positions, head_size / 2] each."""
    d = np.arange(config.head_size // 2)
    frequency = config.rope_base ** (-2.0 * d / config.head_size)
    # Turns in the context of the training. Few turns: slower by the factor; many: unchanged.
    turns = config.rope_original_context * frequency / (2 * np.pi)
    kept = np.clip((turns - config.rope_low) / (config.rope_high - config.rope_low), 0, 1)
    frequency = frequency * (kept + (1 - kept) / config.rope_factor)
    angle = np.arange(positions)[:, None] * frequency
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def read_head(path):
    """The tensors of a file: name -> (dtype, shape, offset in the file, bytes)."""

    def fail(text):
        raise BadFile(f"{path}: {text}")

    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            fail(f"the head has {length} bytes, the file only {max(size - 8, 0)} after the length")
        try:
            head = json.loads(file.read(length))
        except ValueError as error:
            fail(f"JSON: {error}")
    tensors = {}
    for name, entry in head.items() if isinstance(head, dict) else fail("expected an object of tensors"):
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            wanted = SIZES[dtype] * int(np.prod(shape, dtype=object))
            is_inside = 0 <= begin <= end <= size - 8 - length and min(shape, default=0) >= 0
        except (KeyError, TypeError, ValueError):
            fail(f"tensor '{name}': expected a known `dtype`, `shape` and two `data_offsets`")
        if not is_inside:
            fail(f"tensor '{name}': `data_offsets` are outside of the data")
        if wanted != end - begin:
            fail(f"tensor '{name}': its shape has {wanted} bytes, its `data_offsets` have {end - begin}")
        tensors[name] = (dtype, tuple(shape), 8 + length + begin, wanted)
    return tensors


class Checkpoint:
    """The tensors of all safetensors files of a folder."""

    def __init__(self, folder):
        paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".safetensors"))
        if not paths:
            raise BadFile(f"{folder}: there is no file *.safetensors")
        self._folder = folder
        self._places = {name: (path, place) for path in reversed(paths) for name, place in read_head(path).items()}

    def __contains__(self, name):
        return name in self._places

    def bf16(self, name, shape):
        """The bits of a tensor as bf16."""
        if name not in self._places:
            raise BadFile(f"{self._folder}: tensor '{name}' is missing")
        path, (dtype, found, offset, size) = self._places[name]
        if found != tuple(shape):
            raise BadFile(f"{path}: tensor '{name}' has the shape {found}, expected {tuple(shape)} by config.json")
        if dtype == "BF16":
            return np.fromfile(path, np.uint16, size // 2, offset=offset).reshape(shape)
        if dtype not in FLOATS:
            raise BadFile(f"{path}: tensor '{name}' has the type {dtype}, expected floats")
        return to_bf16(np.fromfile(path, FLOATS[dtype], size // SIZES[dtype], offset=offset)).reshape(shape)


def write_safetensors(path, tensors):
    """Writes arrays: uint16 as bf16, float32 and float16 as they are."""
    names = {"uint16": "BF16", "float32": "F32", "float16": "F16"}
    head, offset = {}, 0
    for name, array in tensors.items():
        offsets = [offset, offset + array.nbytes]
        head[name] = {"dtype": names[array.dtype.name], "shape": list(array.shape), "data_offsets": offsets}
        offset += array.nbytes
    text = json.dumps(head).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
