#!/usr/bin/env python3
"""Generates tokens with a Llama model on tk's kernels: the options are those of the C++ program."""

import argparse
import os
import sys

from arrays import HostArrays, TorchArrays
from checkpoint import NAMED, BadFile, Config
from model import Kernels, Model, Sampler, Weights

import tk


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a folder with config.json and *.safetensors; else random weights")
    parser.add_argument("--size", choices=NAMED, default="tiny")
    parser.add_argument("--weight-seed", type=int, default=0)
    parser.add_argument("--prompt", action="append", help="token ids with commas between")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--sample", choices=("greedy", "top-p"), default="greedy")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--top", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--context", type=int, default=0)
    parser.add_argument("--page", type=int, default=16)
    parser.add_argument("--target")
    parser.add_argument("--bundles", help="a folder with llama.tkb and sample.tkb, for a GPU")
    return parser.parse_args()


def make_model(options, prompts, arrays=None):
    config = Config.read(os.path.join(options.model, "config.json")) if options.model else NAMED[options.size]
    kernels = Kernels(options.target, options.bundles)
    is_gpu = bool(options.bundles) or kernels.module_target.startswith("sm_")
    arrays = arrays or (TorchArrays() if is_gpu else HostArrays())
    weights = Weights(arrays, kernels, config)
    weights = weights.load(options.model) if options.model else weights.fill(options.weight_seed)
    temperature = options.temperature if options.sample == "top-p" else None
    sampler = Sampler(arrays, kernels, len(prompts), temperature, options.top, options.seed)
    context = options.context or max(map(len, prompts)) + options.tokens
    return Model(arrays, kernels, config, weights, sampler, len(prompts), options.page, context)


def generate(model, prompts, count):
    """The new tokens of each prompt, up to an end token."""
    lists = [[token] for token in model.prefill(prompts)]
    end = model.config.end_tokens

    def is_done(tokens):
        return len(tokens) == count or tokens[-1] in end

    while not all(map(is_done, lists)):
        for tokens, token in zip(lists, model.decode()):
            if not is_done(tokens):
                tokens.append(token)
    return lists


def main():
    options = parse()
    prompts = [[int(token) for token in text.split(",")] for text in options.prompt or ["1,2,3"]]
    for tokens in generate(make_model(options, prompts), prompts, options.tokens):
        print(*tokens)


if __name__ == "__main__":
    try:
        main()
    except (tk.Error, BadFile, OSError, ValueError, MemoryError) as error:
        sys.exit(f"error: {error}")
