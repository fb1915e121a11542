"""tkc view: the document of a kernel.

usage: check_view.py TKC EXAMPLES

Machine code is left out, with a note, where there is no NVRTC.
"""
import json
import pathlib
import re
import tempfile

from tool_tests import expect, tkc
from view_tests import EXAMPLES, SIZES, has_nvrtc, options


def without_lines(text):
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith("#line "))


def check_maps(document):
    counts = [len(file["text"].splitlines()) + 1 for file in document["files"]]
    for place in document["places"]:
        expect(1 <= place["line"] <= counts[place["file"]], place)
    statements = [number for number, line in enumerate(document["files"][0]["text"].splitlines(), 1)
                  if re.match(r"  (let )?\w+\[.*\] *=", line)]
    expect(statements, "the program has statements")
    for stage in document["stages"]:
        if stage["missing"]:
            continue
        expect(len(stage["lines"]) == stage["text"].count("\n"), f"{stage['name']}: a list for each line")
        used = {place for line in stage["lines"] for place in line}
        expect(used and max(used) < len(document["places"]), stage["name"])
        lines = {document["places"][place]["line"] for place in used}
        # Statements may be fused into others; what the last one computes is in every stage.
        expect(statements[-1] in lines or statements[-2] in lines, f"{stage['name']}: {statements} in {lines}")
        if stage["name"] == "tk":
            expect(lines >= set(statements), f"tk: {statements} in {lines}")


def check_stages(document, name):
    stages = {stage["name"]: stage for stage in document["stages"]}
    for stage in ("tk", "fused", "tiled", "gpu"):
        expect(stages[stage]["text"].strip() == tkc("build", *options(name), "--emit", stage, "-o", "-").strip(),
               f"{name}: the text of {stage} is that of --emit")
    expect(stages["cuda"]["text"].strip() ==
           without_lines(tkc("build", *options(name), "--emit", "cuda", "-o", "-")).strip(),
           f"{name}: the CUDA text is that of --emit")
    lines = stages["cuda"]["text"].split("\n")
    comments = [(int(found[1]), stages["cuda"]["lines"][i]) for i, line in enumerate(lines)
                if (found := re.match(r" +// (\d+): ", line))]
    expect(comments, f"{name}: phases have comments")
    for line, places in comments:
        expect([document["places"][place]["line"] for place in places] == [line], f"{name}: the comment of line {line} is its")
    head = " ".join(line.removeprefix("//").strip() for line in lines if line.startswith("//"))
    expect(f"assumes {document['assumptions']}" in head, f"{name}: the page assumes what the text does: {document['assumptions']}")
    return stages


def check_instructions(document, stages):
    """Instructions are counted in the last text that there is."""
    counts = document["instructions"]
    expect(len(counts["by_place"]) == len(document["places"]) + 1, "a row for each place, and one for none")
    matrix = sum(row[counts["kinds"].index("matrix")] for row in counts["by_place"])
    total = sum(map(sum, counts["by_place"]))
    text = stages[counts["stage"]]["text"]
    if counts["stage"] == "sass":
        expect(matrix == len(re.findall(r"^ +/\*[0-9a-f]+\*/.* [HQI]?G?MMA\.", text, re.M)), matrix)
        expect(total == len(re.findall(r"^ +/\*[0-9a-f]{4,}\*/ .*;", text, re.M)), total)
        if document["kernel"] == "attention":
            # The products of q and k, and those of the weights and v: as many as in PTX.
            of = {place["line"]: row[counts["kinds"].index("matrix")] for place, row in zip(document["places"], counts["by_place"])}
            expect(of[8] == of[11] > 0 and of[8] + of[11] == matrix, of)
    else:
        expect(matrix == len(re.findall(r"^\s*(?:wgmma\.mma_async|mma\.sync)", text, re.M)), matrix)
        expect(total > 20, total)
    expect("// " + next(line for line in stages["cuda"]["text"].split("\n") if line.startswith("// assumes"))[3:] in
           stages["ptx"]["text"], "PTX has the head of CUDA")
    expect(".loc" not in stages["ptx"]["text"] and ".file" not in stages["ptx"]["text"], "PTX without places")


def check_changes(name, document):
    """Passes change lines; what one has added, and no later one removed, is in the IR at the end."""
    changes, places = document["changes"], document["places"]
    expect(len(changes["passes"]) > 5, f"{name}: passes that change something")
    left = {}
    for step in changes["passes"]:
        expect(step["lines"], f"{name}: {step['pass']} changes a line")
        for line in step["lines"]:
            expect(line["removed"] or line["added"], f"{name}: {step['pass']} changes place {line['place']}")
            expect(line["place"] < len(places), line)
            of_place = left.setdefault(line["place"], [])
            for number in line["added"]:
                of_place.append(re.sub(r"%[\w#.$-]+", "%", changes["texts"][number]))
            for number in line["removed"]:
                text = re.sub(r"%[\w#.$-]+", "%", changes["texts"][number])
                if text in of_place:
                    of_place.remove(text)
    gpu = next(stage for stage in document["stages"] if stage["name"] == "gpu")
    at_end = {re.sub(r"%[\w#.$-]+", "%", text.strip()) for text in gpu["text"].split("\n")}
    expect(any(left.values()), f"{name}: additions are left")
    for place, texts in left.items():
        for text in texts:
            expect(text in at_end, f"{name}, place {place}: {text} is in the IR at the end")
    named = {step["pass"].split(":")[0] for step in changes["passes"]}
    expect("tk-tile" in named, named)


def check_choices(document):
    """Both times of what was derived, and of schedules that were declined."""
    choices = document["choices"]
    expect(choices["own_us"] > 0, choices["own_us"])
    without = {choice["pass"]: choice["us"] for choice in choices["without"]}
    expect(set(without) <= {remark["pass"] for remark in document["remarks"] if remark["verdict"] == "derived"}, without)
    expect("tk-choose-schedule" not in without, "the plan is no rewrite")
    # Without the online form the scores are stored.
    expect(without["tk-online-reductions"] > 1.2 * choices["own_us"], (choices["own_us"], without))
    # Both times of each tensor that is inlined: what is stored takes a launch more.
    fusions = {choice["tensor"]: choice for choice in choices["fusions"]}
    expect(set(fusions) == {remark["tensor"] for remark in document["remarks"] if remark["tensor"]}, fusions)
    expect(fusions["p"]["inlined_us"] == choices["own_us"] and fusions["p"]["stored_us"] > 1.2 * choices["own_us"], fusions)
    # Schedules that the planner declined have its rule, and by how much their work is uneven.
    expect(all(other["rule"].endswith(")") and other["uneven"] >= 1 for other in choices["schedules"]), choices["schedules"])
    rules = {other["entries"].split()[0]: other["rule"] for other in choices["schedules"]}
    expect("uneven last round" in rules["raster"] and len(set(rules.values())) == len(rules), rules)
    expect(abs(choices["own_uneven"] - 1) > 0.05, choices["own_uneven"])
    times = [other["us"] for other in choices["schedules"]]
    expect(all(time < 1.5 * choices["own_us"] and abs(time / choices["own_us"] - 1) > 0.001 for time in times), times)
    expect(times and times == sorted(times) and all(" = " in other["entries"] for other in choices["schedules"]), times)


def check_sum(name, cost):
    """The parts of a launch's time make up its time, and labels are those of the page."""
    parts = cost["parts_us"]
    total = cost["launch_us"] + cost["begin_us"] + cost["overlapped_us"] + parts["latency"]
    expect(abs(total / cost["predicted_us"] - 1) < 1e-3, (name, total, cost))
    together = sum(time ** 4 for part, time in parts.items() if part != "latency") ** 0.25
    expect(abs(together / cost["overlapped_us"] - 1) < 1e-3, (name, together, cost))
    expect("L1 and shared memory" in parts and cost["bound"] in parts, parts)
    expect(set(cost["matrix_multiply_adds"]) <= {"bf16"}, cost["matrix_multiply_adds"])
    product = name != "layernorm"
    expect(cost["roofs"]["operations_of"] == ("bf16 on the matrix unit" if product else "CUDA cores"), cost["roofs"])
    expect(cost["uneven"] >= 1 and cost["multiprocessors"] == 132, cost["uneven"])


def check_lines(document):
    """A fact about a tensor has the line that defines it, beside the one at which the tensor is read."""
    of = {}
    for remark in document["remarks"]:
        if remark["tensor"]:
            of.setdefault(remark["tensor"], set()).add(remark["defined_line"])
    expect(of == {"m": {9}, "p": {10}, "p.max": {10}, "p.sum": {10}, "s": {8}, "o+lse": {11}}, of)


def check_document(name, nvrtc):
    document = json.loads(tkc("view", *options(name), "--json", *([] if name == "attention" else ["--quick"])))
    expect(("choices" in document) == (name == "attention"), f"{name}: --quick leaves choices out")
    check_changes(name, document)
    expect(document["format"] == "tk-view 1" and document["dims"]["D" if name == "attention" else SIZES[name][0][0]],
           document["dims"])
    check_maps(document)
    stages = check_stages(document, name)
    report = json.loads(tkc("inspect", *options(name), "--json", *([] if nvrtc else ["--cost"])))
    expect(len(report["launches"]) == len(document["launches"]), "as many launches as inspect has")
    for seen, launch in zip(document["launches"], report["launches"]):
        expect(seen["symbol"] == launch["symbol"] and seen["plan"] == launch["plan"], seen["symbol"])
        for key, value in seen["cost"].items():
            expect(launch[key] == value, f"{name}: {key} is {launch[key]} for inspect, {value} for view")
        expect(abs(sum(seen["time_shares"]) - 1) < 1e-6 and min(seen["time_shares"]) >= 0, seen["time_shares"])
        expect(len(seen["time_shares"]) == len(document["places"]) + 1, "a share for each place, and one for none")
        expect({tensor["name"] for tensor in seen["cost"]["tensors"]}, "bytes by tensor")
        check_sum(name, seen["cost"])
        expect(launch["pipeline"] == seen["pipeline"], f"{name}: {seen['pipeline']}")
        if nvrtc:
            for key in ("registers", "static_shared", "spill_stores", "spill_loads", "blocks_per_sm"):
                expect(seen["code"][key] == launch[key], f"{name}: {key}")
            expect(seen["dynamic_shared"] == launch["dynamic_shared"], f"{name}: dynamic_shared")
        signature = stages["cuda"]["text"].split(f"{launch['symbol']}(", 1)[1].split(")", 1)[0]
        expect([a["name"] for a in seen["arguments"]] == [p.split()[-1].lstrip("*") for p in re.split(
            r",\s*", signature)], f"{name}: names of arguments")
    for key, value in document["total"].items():
        expect(report[key] == value, f"{name}: {key}")
    notes = [json.loads(line) for line in tkc("explain", *options(name), "--json").splitlines()]
    facts = {(note.get("line", 0), note["text"]) for note in notes}
    expect(facts == {(remark["line"], remark["text"]) for remark in document["remarks"]}, "the facts of explain")
    if nvrtc:
        check_instructions(document, stages)
    else:
        expect(next(s for s in document["stages"] if s["name"] == "ptx")["missing"], "why there is no PTX")
    return document


def check_time(documents):
    """The lines that multiply, load and store have the time."""
    for name, hot, least in (("attention", {8, 10, 11}, 0.95), ("layernorm", {6}, 0.9), ("linear_gelu", {4}, 0.95)):
        shares = documents[name]["launches"][0]["time_shares"]
        places = documents[name]["places"]
        of_hot = sum(share for share, place in zip(shares, places) if place["line"] in hot)
        expect(of_hot >= least, f"{name}: lines {hot} have {of_hot:.3f} of the time")


def check_schedule(root, documents):
    """A program with the block that the document has gets the same plans."""
    teams = json.loads(tkc("view", *options("linear_gelu", M=8192, N=14336, K=4096), "--json", "--quick"))
    expect("teams = 2" in teams["schedule"] and teams["schedule_plan"] == "", teams["schedule"])
    expect(teams["launches"][0]["pipeline"].endswith("shared memory has no room for the plan's 8"), teams["launches"][0]["pipeline"])
    # An index that a pass has made has no entry.
    groups = EXAMPLES.parent / "bench" / "programs" / "inference" / "act_quant_static.tk"
    made = json.loads(tkc("view", groups, "--target", "sm_90a", "--dim", "R=8192", "--dim", "C=8192", "--json", "--quick"))
    expect("c.group" in json.dumps(made["stages"]) and made["schedule"] == "" and made["schedule_plan"] is None, made["schedule"])
    for name, document in documents.items():
        expect(document["schedule_plan"] == "", document["schedule_plan"])
        expect(("consumers = " in document["schedule"]) == (name != "layernorm"), document["schedule"])
        expect(document["schedule"].startswith(f"schedule {document['kernel']} {{\n  tile "), document["schedule"])
        (root / "block.tk").write_text(document["schedule"])
        again = json.loads(tkc("view", *options(name), "--schedule", root / "block.tk", "--json", "--quick"))
        expect([launch["plan"] for launch in again["launches"]] == [launch["plan"] for launch in document["launches"]],
               f"{name}: {document['schedule']}")


def check_fused(documents):
    """What is computed with the sums of a product, and sizes for which the code is made."""
    launch = documents["linear_gelu"]["launches"][0]
    expect(launch["epilogue"].startswith("load of bias, add") and "erf" in launch["epilogue"] and not launch["prologue"], launch["epilogue"])
    expect(documents["layernorm"]["launches"][0]["epilogue"] == "", "rows have no product")
    window = json.loads(tkc("view", EXAMPLES / "conv2d.tk", "--target", "sm_90a", "--json", "--quick", *(word for size in (
        "N=16", "C=64", "H=56", "W=56", "O=64", "R=3", "S=3") for word in ("--dim", size))))
    expect("R = 3, S = 3" in window["assumptions"] and "R <=" not in window["assumptions"], window["assumptions"])
    for launch in window["launches"]:
        for tensor in launch["cost"]["tensors"]:
            expect(tensor["written"] <= 1.03 * tensor["bytes"], tensor)


def check_bytes():
    """The bytes and operations that a program needs are those that bench counts, and the bytes are those of its tensors."""
    for name, sizes, least in (("layernorm", "R=4096 C=1024", 2 * (2 * 4096 * 1024 + 2 * 1024)),
                               ("conv2d", "N=2 C=8 H=12 W=10 O=16 R=3 S=3", 2 * (2 * 8 * 120 + 16 * 8 * 9 + 2 * 16 * 120))):
        words = [EXAMPLES / f"{name}.tk", *(word for size in sizes.split() for word in ("--dim", size))]
        document = json.loads(tkc("view", *words, "--target", "sm_90a", "--json", "--quick"))
        line = json.loads(tkc("bench", *words, "--target", "cpu", "--rounds", "1", "--json"))
        for counted in (line["bytes"], document["total"]["needed_bytes"]):
            expect(abs(counted - least) <= 1e-5 * least, (name, counted, least))
        expect(abs(line["flops"] - document["total"]["needed_operations"]) <= 1e-5 * line["flops"], (name, line))


def main():
    nvrtc = has_nvrtc()
    with tempfile.TemporaryDirectory() as folder:
        documents = {name: check_document(name, nvrtc) for name in SIZES}
        check_lines(documents["attention"])
        check_time(documents)
        check_schedule(pathlib.Path(folder), documents)
        check_fused(documents)
        check_bytes()
        # So many keys that a launch more is little beside what the choices cost.
        check_choices(json.loads(tkc("view", *options("attention", S=2048, T=2048), "--json")))


main()
