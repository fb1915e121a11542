"""examples/llama on a tiny model: the programs in C++ and Python against NumPy's f64, token by token; files that are
wrong; the command line.

    llama_test.py FOLDER PROGRAM [EMULATED...]   the folder of the example, the program in C++, and the targets that
                                                 run the GPU's kernels on the CPU
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from types import SimpleNamespace

try:
    import numpy as np
except ImportError:
    print("not run: there is no NumPy")
    sys.exit(77)

FOLDER, PROGRAM, *EMULATED = sys.argv[1:]
TARGET = "cpu"
sys.path.insert(0, os.path.join(FOLDER, "python"))

import llama
from checkpoint import NAMED, BadFile, Checkpoint, Config, from_bf16, read_head, to_bf16, write_safetensors
from reference import Reference, random_tensors

CONFIG = NAMED["tiny"]
# Pages of 8 rows: a prompt within a page, one that fills two, one that ends in a third. 20 more tokens close
# at least two pages of each sequence.
PAGE, COUNT = 8, 20
PROMPTS = [[7, 300, 12, 5, 88], list(range(20, 36)), list(range(200, 217))]
# The seeds were searched: no choice is near another one, so that the order of sums does not matter.
WEIGHT_SEED, GREEDY_MARGIN = 24, 0.15
TEMPERATURE, TOP, SEED, TOP_P_COUNT, TOP_P_MARGINS = 0.5, 0.75, 234, 10, (0.5, 0.01)
OPTIONS = ["--target", TARGET, "--page", str(PAGE)]
for PROMPT in PROMPTS:
    OPTIONS += ["--prompt", ",".join(map(str, PROMPT))]
GREEDY = [*OPTIONS, "--tokens", str(COUNT)]
SAMPLING = [*OPTIONS, "--tokens", str(TOP_P_COUNT)]
SAMPLING += ["--sample", "top-p", "--temperature", str(TEMPERATURE), "--top", str(TOP), "--seed", str(SEED)]


def run(*options):
    return subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=300)


def tokens_of(result):
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return [[int(word) for word in line.split()] for line in result.stdout.splitlines()]


def make_options(count, **changes):
    """Of the Python program."""
    options = SimpleNamespace(model=None, size="tiny", weight_seed=0, target=TARGET, bundles=None, tokens=count)
    vars(options).update(context=0, page=PAGE, sample="greedy", temperature=TEMPERATURE, top=TOP, seed=SEED)
    vars(options).update(changes)
    return options


def python_tokens(count, **changes):
    """The Python program's."""
    return llama.generate(llama.make_model(make_options(count, **changes), PROMPTS), PROMPTS, count)


def make_tensors():
    """Random weights, with norms that are not 1."""
    tensors, generator = random_tensors(CONFIG, WEIGHT_SEED), np.random.default_rng(0)
    for name in tensors:
        if "norm" in name:
            tensors[name] = to_bf16(generator.uniform(0.5, 1.5, CONFIG.width))
    return tensors


def write_config(folder, **changes):
    values = dict(
        model_type="llama",
        vocab_size=CONFIG.vocabulary,
        hidden_size=CONFIG.width,
        intermediate_size=CONFIG.intermediate,
        num_hidden_layers=CONFIG.layers,
        num_attention_heads=CONFIG.heads,
        num_key_value_heads=CONFIG.key_heads,
        head_dim=CONFIG.head_size,
        rms_norm_eps=CONFIG.norm_epsilon,
        rope_theta=CONFIG.rope_base,
    )
    values.update(changes)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(values, file)


class Generated(unittest.TestCase):
    """Both programs and the reference generate the same tokens."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        tensors = make_tensors()
        # Two files, one of them with f32 and f16 elements that bf16 holds.
        names = sorted(tensors)
        mixed = {name: from_bf16(tensors[name]) for name in names[::2]}
        mixed["model.norm.weight"] = from_bf16(tensors["model.norm.weight"])
        rest = {name: tensors[name] for name in names if name not in mixed}
        write_safetensors(os.path.join(cls.folder.name, "model-1.safetensors"), mixed)
        write_safetensors(os.path.join(cls.folder.name, "model-2.safetensors"), rest)
        write_config(cls.folder.name)
        cls.tensors = tensors
        cls.reference = Reference(CONFIG, tensors)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_greedy(self):
        expected = [self.reference.generate(prompt, COUNT) for prompt in PROMPTS]
        self.assertGreater(self.reference.margin, GREEDY_MARGIN)
        self.assertEqual(tokens_of(run("--model", self.folder.name, *GREEDY)), expected)
        self.assertEqual(python_tokens(COUNT, model=self.folder.name), expected)

    def test_top_p(self):
        reference = Reference(CONFIG, self.tensors)
        expected = [
            reference.generate(prompt, TOP_P_COUNT, TEMPERATURE, TOP, SEED + i) for i, prompt in enumerate(PROMPTS)
        ]
        self.assertGreater(reference.margin, TOP_P_MARGINS[0])
        self.assertGreater(reference.share_margin, TOP_P_MARGINS[1])
        self.assertEqual(tokens_of(run("--model", self.folder.name, *SAMPLING)), expected)
        self.assertEqual(python_tokens(TOP_P_COUNT, model=self.folder.name, sample="top-p"), expected)

    def test_a_sequence_does_not_depend_on_its_neighbours(self):
        alone = ["--model", self.folder.name, "--target", TARGET, "--tokens", str(COUNT)]
        expected = self.reference.generate(PROMPTS[1], COUNT)
        result = run(*alone, "--prompt", ",".join(map(str, PROMPTS[1])), "--page", "4", "--context", "100")
        self.assertEqual(tokens_of(result), [expected])

    def test_end_token_ends_a_sequence(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(self.folder.name):
                os.symlink(os.path.join(self.folder.name, name), os.path.join(folder, name))
            full = self.reference.generate(PROMPTS[0], COUNT)
            os.unlink(os.path.join(folder, "config.json"))
            write_config(folder, eos_token_id=[full[4], 319])
            short = tokens_of(run("--model", folder, *GREEDY))
        self.assertEqual(short[0], full[: full.index(full[4]) + 1])

    def test_random_weights(self):
        count, seed = 10, 47
        reference = Reference(CONFIG, random_tensors(CONFIG, seed))
        expected = [reference.generate(prompt, count) for prompt in PROMPTS]
        self.assertGreater(reference.margin, GREEDY_MARGIN)
        options = [*OPTIONS, "--tokens", str(count), "--weight-seed", str(seed)]
        self.assertEqual(tokens_of(run(*options)), expected)
        self.assertEqual(python_tokens(count, weight_seed=seed), expected)
        for target in EMULATED:
            with self.subTest(target=target):
                self.assertEqual(tokens_of(run(*options, "--target", target)), expected)


class WithTorch(unittest.TestCase):
    """PyTorch's tensors on the host, and the peer of bench/llama.py."""

    def test_tokens(self):
        try:
            import torch
        except ImportError:
            self.skipTest("there is no PyTorch")
        from arrays import TorchArrays
        from checkpoint import rope_table

        path = os.path.join(FOLDER, "..", "..", "bench", "llama.py")
        spec = importlib.util.spec_from_file_location("bench_llama", path)
        bench = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(bench)
        arrays, prompt, count = TorchArrays("cpu"), PROMPTS[1], 4
        options = make_options(count, weight_seed=47)
        model = llama.make_model(options, [prompt], arrays)
        expected = Reference(CONFIG, random_tensors(CONFIG, 47)).generate(prompt, count)
        self.assertEqual(llama.generate(model, [prompt], count), [expected])
        self.assertEqual(llama.generate(model, [prompt], count), [expected])
        tables = [arrays.array(table, "float32") for table in rope_table(CONFIG, len(prompt) + 1)]
        peer = bench.TorchModel(torch, CONFIG, model.weights, tables, 1, len(prompt) + 1)
        with torch.no_grad():
            first = peer(torch.tensor([prompt]), torch.arange(len(prompt)), True).argmax()
            second = peer(first.reshape(1, 1), torch.tensor([len(prompt)]), False).argmax()
        self.assertEqual([int(first), int(second)], expected[:2])


class Files(unittest.TestCase):
    """Both readers refuse files that are not what they claim to be, and say why."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "model.safetensors")
        write_config(self.folder)

    def refused(self, text, code="bad_file"):
        result = run("--model", self.folder, "--target", TARGET)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"error[{code}]", result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual(result.stdout, "")

    def write(self, head, data=b"", length=None):
        head = head if isinstance(head, bytes) else json.dumps(head).encode()
        with open(self.path, "wb") as file:
            file.write((len(head) if length is None else length).to_bytes(8, "little") + head + data)

    def test_no_file(self):
        self.refused("no file *.safetensors", "io")

    def test_short_file(self):
        with open(self.path, "wb") as file:
            file.write(b"1234")
        self.refused("expected at least 8 bytes, got 4")

    def test_long_head(self):
        self.write({}, length=2**63)
        self.refused("the head has 9223372036854775808 bytes")
        with self.assertRaisesRegex(BadFile, "the head has"):
            read_head(self.path)

    def test_bad_json(self):
        for head in (b"{", b"[1", b'{"a" 1}', b"nul", b'{"a":1,"a":2}', b"[" * 100, b'"\\x"', b"{} 1", b"1e", b'"\n"'):
            self.write(head)
            self.refused("JSON, byte")

    def test_bad_entries(self):
        name = "model.embed_tokens.weight"
        for entry, text in (
            ({"dtype": "BF16", "shape": [2]}, "expected `dtype`, `shape` and two `data_offsets`"),
            ({"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}, "unknown dtype 'C64'"),
            ({"dtype": "BF16", "shape": [-1], "data_offsets": [0, 4]}, "a bad extent"),
            ({"dtype": "BF16", "shape": [2**62, 8], "data_offsets": [0, 0]}, "a bad extent"),
            ({"dtype": "BF16", "shape": [2], "data_offsets": [2, 6]}, "outside of the 4 bytes"),
            ({"dtype": "BF16", "shape": [2], "data_offsets": [3, 1]}, "outside of the 4 bytes"),
            ({"dtype": "BF16", "shape": [3], "data_offsets": [0, 4]}, "has 6 bytes"),
        ):
            self.write({name: entry}, b"1234")
            self.refused(text)
            with self.assertRaisesRegex(BadFile, name):
                read_head(self.path)

    def test_missing_or_misshapen_tensor(self):
        tensors = make_tensors()
        del tensors["model.layers.1.mlp.up_proj.weight"]
        write_safetensors(self.path, tensors)
        self.refused("tensor 'model.layers.1.mlp.up_proj.weight' is missing")
        tensors = {"model.embed_tokens.weight": np.zeros((3, 64), np.uint16)}
        write_safetensors(self.path, tensors)
        self.refused("has the shape [3, 64], expected [320, 64] by config.json")
        with self.assertRaisesRegex(BadFile, "expected .320, 64. by config.json"):
            Checkpoint(self.folder).bf16("model.embed_tokens.weight", (320, 64))

    def test_bad_config(self):
        for changes, text, code in (
            ({"model_type": "gpt2"}, 'expected "model_type": "llama"', "unsupported"),
            ({"hidden_size": "big"}, "expected a positive integer as `hidden_size`", "bad_file"),
            ({"num_hidden_layers": None}, "`num_hidden_layers` is missing", "bad_file"),
            ({"num_key_value_heads": 3}, "no multiple of `num_key_value_heads`", "bad_file"),
            ({"head_dim": 15}, "`head_dim` is odd", "bad_file"),
            ({"rope_scaling": {"rope_type": "yarn"}}, "not of type `llama3`", "unsupported"),
        ):
            write_config(self.folder, **changes)
            self.refused(text, code)

    def test_scaled_rope(self):
        tensors, count = make_tensors(), 6
        scaling = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0)
        write_config(self.folder, rope_scaling={**scaling, "original_max_position_embeddings": 16})
        write_safetensors(self.path, tensors)
        config = replace(CONFIG, rope_factor=4.0, rope_original_context=16)
        self.assertEqual(Config.read(os.path.join(self.folder, "config.json")), config)
        expected = Reference(config, tensors).generate(PROMPTS[2], count)
        prompt = ",".join(map(str, PROMPTS[2]))
        result = run("--model", self.folder, "--target", TARGET, "--prompt", prompt, "--tokens", str(count))
        self.assertEqual(tokens_of(result), [expected])


class CommandLine(unittest.TestCase):
    def test_refused(self):
        for options, text in (
            (["--frob"], "unknown option '--frob'"),
            (["--prompt"], "a value is missing"),
            (["--prompt", "1,,2"], "expected an integer"),
            (["--prompt", "320"], "token 320 is outside of the vocabulary of 320"),
            (["--prompt", "1,2,3", "--context", "2"], "prompt 0 has 3 tokens; expected 1 to 2"),
            (["--prompt", "1,2,3", "--context", "4"], "longer than the context of 4 tokens"),
            (["--sample", "best"], "expected greedy or top-p"),
            (["--sample", "top-p", "--top", "0"], "expected a sum of probabilities in (0, 1]"),
            (["--sample", "top-p", "--temperature", "nan"], "expected a temperature above 0"),
            (["--size", "70b"], "unknown size '70b'"),
            (["--target", "sm_1"], "sm_1"),
        ):
            result = run("--target", TARGET, *options)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(text, result.stderr)

    def test_refused_by_python(self):
        for changes, prompt, text in (
            ({}, [320], "token 320 is outside of the vocabulary of 320"),
            ({}, [], "prompt 0 has 0 tokens"),
            ({"context": 2}, [1, 2, 3], "prompt 0 has 3 tokens; expected 1 to 2"),
            ({"context": 4}, [1, 2, 3], "longer than the context of 4 tokens"),
            ({"sample": "top-p", "top": 0.0}, [1], "expected a sum of probabilities"),
            ({"sample": "top-p", "temperature": float("nan")}, [1], "expected a temperature above 0"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                llama.generate(llama.make_model(make_options(4, **changes), [prompt]), [prompt], 4)

    def test_help(self):
        self.assertIn("--random-prompts", run("--help").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
