#!/usr/bin/env python3
"""Runs `tkc inspect --mesh` and `tkc view --mesh`: the steps of a rank, their times by hand, and wrong input.

check_mesh_cost.py TKC
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS, EXPERTS = ROOT / "examples/tensor_parallel.tk", ROOT / "examples/experts.tk"
SLOW = ROOT / "tests/e2e/mesh/networks/slow.json"
problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)


def near(value, expected, what):
    expect(abs(value - expected) <= 1e-3 * expected, f"{what}: {value}, expected {expected}")


class Tool:
    def __init__(self, tkc):
        self.tkc = tkc

    def run(self, command, *words):
        return subprocess.run([self.tkc, command, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)

    def inspect(self, file, *words):
        ran = self.run("inspect", file, "--target", "sm_90a", "--json", *words)
        expect(ran.returncode == 0, f"{words}: {ran.stderr}")
        return json.loads(ran.stdout) if ran.returncode == 0 else {"steps": []}

    def refused(self, code, part, *words, command="inspect"):
        ran = self.run(command, *words)
        expect(ran.returncode == code and not ran.stdout, f"{words}: exit {ran.returncode}, expected {code}")
        expect(part in ran.stderr, f"{words}: expected '{part}' in: {ran.stderr}")


def dims(**sizes):
    return [word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")]


UP = ["--kernel", "up", "--mesh", "tp=2"]
SMALL, LARGE = dims(M=128, C=4096, F=14336), dims(M=8192, C=4096, F=14336)


def check_steps(tool):
    small = tool.inspect(LAYERS, *UP, *SMALL)
    expect([step["step"] for step in small["steps"]] == ["all_gather over tp", "launch up_1"], f"steps: {small['steps']}")
    gather, launch = small["steps"]
    # 1 MiB by stores: 9.7 us of base, one step of 1.5 us, and half a MiB at 0.48 of 450 GB/s.
    near(gather["comms_us"], 9.7 + 1.5 + 2 ** 19 / (0.48 * 450e3), "gather of 1 MiB")
    expect(gather["bound"] == "node" and gather["array_bytes"] == 2 ** 20, f"gather: {gather}")
    expect(0 < launch["math_us"] < launch["launch_us"] and launch["comms_us"] == 0, f"launch: {launch}")
    near(small["total_us"], gather["comms_us"] + launch["launch_us"], "one after the other")
    # On a pair of GPUs the same links take the same time.
    pair = tool.inspect(LAYERS, *UP, *SMALL, "--network", "h200-pair")
    near(pair["steps"][0]["comms_us"], gather["comms_us"], "gather of a pair")
    expect(pair["network"] != small["network"], "the pair has the name of the node")


def check_overlap(tool):
    large = tool.inspect(LAYERS, *UP, *LARGE)
    step = large["steps"][0]
    expect(len(large["steps"]) == 1 and step["step"] == "gather_launch over tp up_1", f"steps: {large['steps']}")
    # One copy of 32 MiB at 0.86 of 450 GB/s.
    near(step["comms_us"], 26 + 0.5 + 2 ** 25 / (0.86 * 450e3), "send of half of the rows")
    expect(0 < step["hidden_us"] <= step["comms_us"], f"hidden: {step}")
    near(step["total_us"], step["launch_us"] + step["comms_us"] - step["hidden_us"], "total")
    text = tool.run("inspect", LAYERS, "--target", "sm_90a", *UP, *LARGE).stdout
    expect("T_comms" in text and "gather_launch over tp up_1" in text, f"text: {text}")
    down = tool.inspect(LAYERS, "--kernel", "down", "--mesh", "tp=2", *LARGE)
    expect(down["steps"][0]["step"] == "launch_exchange over tp down_1", f"steps: {down['steps']}")
    why = tool.run("explain", LAYERS, "--target", "sm_90a", *UP, *LARGE).stdout
    expect("block by block beside the transfers" in why, f"explain: {why}")


def check_held(tool):
    """NCCL's kernels hold multiprocessors: a launch beside them ends as if it began behind them."""
    with tempfile.TemporaryDirectory() as folder:
        network = json.loads((ROOT / "examples/networks/h200-pair.json").read_text())
        network["protocols"] = [entry for entry in network["protocols"] if "by" not in entry]
        for name in ("copy_engines", "one_shot"):
            del network["levels"][0]["protocols"][name]
        path = pathlib.Path(folder) / "kernels.json"
        path.write_text(json.dumps(network))
        held = tool.inspect(LAYERS, *UP, *LARGE, "--network", path)
        for protocol in network["protocols"]:
            protocol["multiprocessors"] = 0
        path.write_text(json.dumps(network))
        free = tool.inspect(LAYERS, *UP, *LARGE, "--network", path)
        for found in (held, free):
            expect([step["step"] for step in found["steps"]] == ["gather_launch over tp up_1"], f"steps: {found}")
        step = free["steps"][0]
        near(held["total_us"] - free["total_us"], step["comms_us"] - step["latency_us"], "what is not hidden")
        expect(held["steps"][0]["hidden_us"] < 0 < step["hidden_us"], f"hidden: {held} {free}")


def check_attention(tool):
    """The states of few queries take less than the keys; of many queries more."""
    file = ROOT / "bench/programs/mesh/attention.tk"
    few = tool.inspect(file, "--kernel", "decode", "--mesh", "cp=2", *dims(B=8, T=32768, H=32, G=8, D=128))["steps"]
    expect([step["step"].split()[0] for step in few] == ["launch", "all_gather", "all_gather", "launch"], f"few: {few}")
    # The results of both ranks in f32.
    near(few[1]["array_bytes"], 2 * 8 * 32 * 128 * 4, "bytes of the states")
    many = tool.inspect(file, "--kernel", "long", "--mesh", "cp=2", *dims(S=32768, T=32768, H=16, G=16, D=128))["steps"]
    expect([step["step"].split()[0] for step in many] == ["all_gather", "all_gather", "launch"], f"many: {many}")
    near(many[0]["array_bytes"], 32768 * 16 * 128 * 2, "bytes of the keys")
    why = tool.run("explain", file, "--target", "sm_90a", "--kernel", "decode", "--mesh", "cp=2",
                   *dims(B=8, T=32768, H=32, G=8, D=128)).stdout
    expect("each rank computes the partial softmax state of its own keys" in why, f"explain: {why}")


def check_experts(tool):
    sizes = ["--mesh", "ep=2", "--kernel", "experts", *dims(M=4096, C=2048, E=64, F=1408, K=6)]
    steps = tool.inspect(EXPERTS, *sizes)["steps"]
    sent = [step for step in steps if step["step"] == "exchange over ep"]
    expect(len(sent) == 3, f"{len(sent)} exchanges: ids, rows and results are expected")
    # The rows of all tokens and experts, in bf16, each of which goes to one rank.
    near(sent[1]["array_bytes"], 4096 * 6 * 2048 * 2, "bytes of the rows")
    one = tool.inspect(EXPERTS, *sizes[2:], "--mesh", "ep=1")["steps"]
    expect([step["step"].split()[0] for step in one] == ["launch"], f"one rank: {one}")


def check_view(tool):
    ran = tool.run("view", LAYERS, "--target", "sm_90a", *UP, *SMALL, "--quick", "--json", "-o", "-")
    document = json.loads(ran.stdout) if ran.returncode == 0 else {}
    expect(document.get("mesh", {}).get("mesh") == "tp=2", f"view: {ran.stderr}")
    page = tool.run("view", LAYERS, "--target", "sm_90a", *UP, *SMALL, "--quick", "-o", "-").stdout
    expect("meshCard" in page and "all_gather over tp" in page, "the page does not show the steps")
    tool.refused(1, "give each with --dim", LAYERS, "--target", "sm_90a", *UP, "--quick", command="view")


def check_refusals(tool):
    file = [LAYERS, "--target", "sm_90a", *UP]
    tool.refused(1, "give each with --dim", *file, "--dim", "M=128")
    tool.refused(1, "M % 2 == 0 (axis 'tp' of the mesh)", *file, *dims(M=127, C=64, F=64))
    tool.refused(1, "which the mesh does not have", LAYERS, "--target", "sm_90a", "--kernel", "up", "--mesh", "dp=2", *SMALL)
    tool.refused(1, "expected --mesh AXIS=RANKS", LAYERS, "--target", "sm_90a", "--kernel", "up", "--mesh", "tp", *SMALL)
    tool.refused(1, "nowhere.json", *file, *SMALL, "--network", "nowhere.json")
    tool.refused(1, "format", *file, *SMALL, "--network", ROOT / "examples/models/llama-8b.json")
    tool.refused(1, "the network", LAYERS, "--target", "sm_90a", "--kernel", "up", "--mesh", "tp=4", *SMALL, "--network", "h200-pair")
    tool.refused(2, "--sass", *file, *SMALL, "--sass")
    tool.refused(2, "--mesh", LAYERS, "--target", "cpu", *UP, *SMALL)
    expect(tool.run("inspect", LAYERS, "--kernel", "up", "--network", SLOW, *SMALL).returncode != 0, "--network without --mesh")


def main():
    tool = Tool(sys.argv[1])
    for check in (check_steps, check_overlap, check_held, check_attention, check_experts, check_view, check_refusals):
        check(tool)
    print("\n".join(problems) or "the costs of meshes are right")
    sys.exit(1 if problems else 0)


main()
