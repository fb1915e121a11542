#!/usr/bin/env python3
"""Runs `tkc mesh` as a user does: the shipped models and networks, its outputs, and wrong input.

check_mesh.py TKC
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS, NETWORKS = ROOT / "examples/models", ROOT / "examples/networks"
LLAMA, EXPERTS = MODELS / "llama-8b.json", MODELS / "experts-16b.json"
problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)


class Tool:
    def __init__(self, tkc):
        self.tkc = tkc

    def run(self, *words, text=None):
        return subprocess.run([self.tkc, "mesh", *map(str, words)], input=text, capture_output=True, text=True, timeout=60)

    def json(self, *words):
        ran = self.run(*words, "--json")
        expect(ran.returncode == 0, f"{words}: {ran.stderr}")
        return json.loads(ran.stdout) if ran.returncode == 0 else {}

    def refused(self, code, part, *words, text=None):
        ran = self.run(*words, text=text)
        expect(ran.returncode == code and not ran.stdout, f"{words}: exit {ran.returncode}, expected {code}")
        expect(part in ran.stderr, f"{words}: expected '{part}' in: {ran.stderr}")


def check_predictions(tool):
    meshes = [(LLAMA, "dp=32,tp=8,pp=4", 1024), (LLAMA, "dp=1", 1), (EXPERTS, "dp=16,tp=8,ep=8,pp=4", 512),
              (EXPERTS, "dp=64,ep=64", 64)]
    for model, mesh, gpus in meshes:
        for overlap in ("none", "gradients", "all"):
            step = tool.json(model, "--mesh", mesh, "--overlap", overlap)
            expect(step["gpus"] == gpus, f"{mesh}: {step['gpus']} GPUs")
            expect(abs(sum(step["parts_ns"].values()) / step["step_ns"] - 1) < 1e-9, f"{mesh}: parts do not add up")
            for row in step["rows"]:
                expect(0 <= row["hidden_ns"] <= row["total_ns"], f"{mesh}: {row['name']} hides more than it takes")
                expect(row["total_ns"] > 0, f"{mesh}: {row['name']} takes no time")
            names = [row["name"] for row in step["rows"]]
            expect(len(names) == len(set(names)), f"{mesh}: two rows have one name")
    slow, usual, fast = (tool.json(LLAMA, "--mesh", "dp=16,tp=8", "--overlap", overlap)["step_ns"]
                         for overlap in ("none", "gradients", "all"))
    expect(slow > usual > fast, "more overlap is not faster")
    axes = {limit["parallelism"] for limit in tool.json(EXPERTS, "--mesh", "dp=16,tp=8,ep=8,pp=4")["limits"]}
    expect(axes == {"dp", "dp/ep", "tp", "ep", "pp"}, f"limits of {axes}")


def check_network(tool):
    for name in ("h100-superpod", "h100-node", "h200-pair"):
        by_name = tool.json("--collectives", "--mesh", "tp=2", "--network", name)
        by_file = tool.json("--collectives", "--mesh", "tp=2", "--network", NETWORKS / f"{name}.json")
        expect(by_name == by_file, f"{name}: the name and the file differ")
    listed = tool.json("--collectives", "--mesh", "tp=2", "--bytes", "1000,2000")["collectives"]
    expect({entry["array_bytes"] for entry in listed} == {1000, 2000}, "--bytes does not give the sizes")
    h100 = tool.json(LLAMA, "--mesh", "tp=8", "--network", "h100-node")
    h200 = tool.json(LLAMA, "--mesh", "tp=8", "--network", "h100-node", "--device", "H200")
    expect((h100["device"], h200["device"]) == ("H100", "H200"), "--device does not change the device")
    inner = tool.json(EXPERTS, "--mesh", "dp=64,ep=8", "--order", "ep,tp,dp,pp")
    levels = {row["level"] for row in inner["rows"] if row.get("parallelism") == "ep"}
    expect(levels == {"node"}, f"ep first stays in a node, not {levels}")


def check_outputs(tool, folder):
    page, picture, times = folder / "page.html", folder / "picture.svg", folder / "times.json"
    mesh = ("--mesh", "dp=16,tp=8,ep=8,pp=4")
    for path in (page, picture):
        ran = tool.run(EXPERTS, *mesh, "-o", path)
        expect(ran.returncode == 0 and not ran.stdout, f"-o {path.name}: {ran.stderr}")
    root = xml.etree.ElementTree.parse(picture).getroot()
    texts = "".join(root.itertext())
    for word in ("DeepSeekMoE 16B", "training step", "forward.dispatch", "links of 25 GB/s", "pipeline bubble"):
        expect(word in texts, f"the picture has no '{word}'")
    text = page.read_text()
    expect("<svg" in text and "Sources" in text and "T_comms" in text, "the page lacks a part")
    expect("<script" not in text and 'src="' not in text, "the page needs other files")
    times.write_text(json.dumps({"microseconds": {"forward.qkv": 1234.5, "update.optimizer": 7}}))
    rows = {row["name"]: row for row in tool.json(LLAMA, "--mesh", "tp=8", "--measured", times)["rows"]}
    expect(rows["forward.qkv"]["total_ns"] == 1234500 and rows["forward.qkv"]["measured"], "a measured time is not used")
    expect(not rows["forward.attention"]["measured"], "a predicted time is called measured")
    expect("<b>" not in tool.run("-", "--mesh", "dp=1", text=LLAMA.read_text().replace("Llama", "<b>")).stderr, "-")
    hostile = tool.run("-", "--mesh", "dp=1", "-o", picture, text=LLAMA.read_text().replace("Llama 3", "</title>&<x>\\u0001"))
    expect(hostile.returncode == 0, hostile.stderr)
    xml.etree.ElementTree.parse(picture)


def check_refusals(tool, folder):
    one = ("--mesh", "dp=1")
    tool.refused(2, "expected a model", *one)
    tool.refused(2, "expected a model", LLAMA, *one, "--collectives")
    tool.refused(2, "--mesh is required", LLAMA)
    tool.refused(2, "--overlap", LLAMA, *one, "--overlap", "some")
    tool.refused(2, "--bytes", "--collectives", *one, "--bytes", "0")
    tool.refused(1, "expected a divisor of dp", "--collectives", "--mesh", "dp=4,ep=3")
    tool.refused(1, "has 1024", "--collectives", "--mesh", "dp=1025")
    tool.refused(1, "cannot read", folder / "none.json", *one)
    tool.refused(1, "cannot read", LLAMA, *one, "--network", folder / "none.json")
    tool.refused(1, "is no JSON", "-", *one, text="{")
    tool.refused(1, "brackets in each other", "-", *one, text="[" * 1000000)
    tool.refused(1, "is no JSON", "-", *one, text='{"name": "' + "[" * 1000 + "\\\"")
    tool.refused(1, "`name`: the field is missing", "-", *one, text="{}")
    tool.refused(1, "unknown field; near it is 'causal'", "-", *one,
                 text=LLAMA.read_text().replace('"causal"', '"casual"'))
    tool.refused(1, "the mesh has 2048 GPUs", LLAMA, "--mesh", "dp=32,tp=16,pp=4")
    tool.refused(1, "the network 'a node of eight H100' has 8", LLAMA, "--mesh", "tp=16", "--network", "h100-node")
    tool.refused(1, "has no experts", LLAMA, "--mesh", "dp=8,ep=8")
    tool.refused(1, "unknown axis", LLAMA, "--mesh", "x=8")
    tool.refused(1, "expected AXIS=SIZE", LLAMA, "--mesh", "dp")
    tool.refused(1, "expected a divisor of heads", LLAMA, "--mesh", "tp=3")
    tool.refused(1, "unknown device 'H1'", LLAMA, *one, "--device", "H1")
    tool.refused(1, "unknown device", LLAMA, *one, "--network", "-",
                 text=(NETWORKS / "h100-node.json").read_text().replace('"H100"', '"H1"'))
    times = folder / "wrong.json"
    times.write_text('{"microseconds": {"forward.qvk": 1}}')
    tool.refused(1, "near it is 'forward.qkv'", LLAMA, *one, "--measured", times)
    tool.refused(3, "none/page.html", LLAMA, *one, "-o", folder / "none/page.html")


def main():
    tool = Tool(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        check_predictions(tool)
        check_network(tool)
        check_outputs(tool, pathlib.Path(name))
        check_refusals(tool, pathlib.Path(name))
    print("\n".join(problems) or "tkc mesh does what its page says")
    sys.exit(bool(problems))


main()
