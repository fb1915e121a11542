"""tkc view: the document, the page and the comparison of two documents.

usage: check_view.py TKC EXAMPLES

Machine code is left out, with a note, where there is no NVRTC, and the page's behaviour where there is no
Chromium.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

TKC, EXAMPLES = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SIZES = {
    "attention": ("B=2", "H=4", "S=512", "T=512", "G=2", "D=128", "E=128"),
    "layernorm": ("R=4096", "C=1024"),
    "linear_gelu": ("M=1024", "N=1024", "K=512"),
}
HOSTILE = """// </script><script>window.broken = 1</script> <!-- <img src=x onerror="window.broken = 1"> & \\u003c
kernel twice(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
  y[i] = 2 * x[i]
}
"""
# Runs inside the page, in front of its own program: what goes wrong becomes text of the document.
WATCH = """<script>
window.problems = [];
addEventListener("error", (event) => problems.push(String(event.message)));
for (const name of ["error", "warn"]) console[name] = (...words) => problems.push(words.join(" "));
const say = (key, value) => document.body.setAttribute("data-" + key, value);
addEventListener("load", () => {
  say("problems", "the clicks ended early");
  // The page begins with the line that takes the most time, the stage with its head, and says what would be faster.
  say("hottest", document.querySelectorAll("#source-pane .row.marked").length + document.querySelectorAll("#line .card").length);
  say("head", document.querySelector("#stage .code").scrollTop);
  say("faster", document.getElementById("summary").textContent.includes("What would make it faster"));
  const rows = () => [...document.querySelectorAll("#source-pane .row")];
  const count = (where) => document.querySelectorAll(where + " .row.marked").length;
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  rows().find((row) => Number(row.dataset.line) === LINE).click();
  say("source", count("#source-pane"));
  say("stage", count("#stage"));
  // A card counts once its passes and what the first of them changed open.
  const opened = [...document.querySelectorAll("#line .card")].filter((card) => {
    const open = (list) => {
      list.open = true;
      list.dispatchEvent(new Event("toggle"));
    };
    open(card.querySelector(".passes"));
    const first = card.querySelector(".passes > details");
    if (first) open(first);
    return card.querySelector(".change");
  });
  say("details", opened.length);
  // A line that is chosen shows the heaviest operation of it, and the marks are gone through by runs.
  const cursor = () => document.querySelector("#stage .row.cursor");
  const top = () => document.querySelector("#stage .code").scrollTop;
  say("cursor", cursor() ? cursor().textContent : "");
  const seen = new Set();
  for (let i = 0; i < 4; ++i) { press("n"); if (cursor()) seen.add(cursor().dataset.line); }
  say("runs", seen.size);
  const before = [top(), cursor() && cursor().dataset.line].join();
  press("1");
  press("5");
  say("kept", [top(), cursor() && cursor().dataset.line].join() === before);
  document.querySelector("#stage .row.marked").click();
  say("back", count("#source-pane"));
  press("Escape");
  say("escaped", count("#source-pane") + count("#stage"));
  press("j");
  say("key", count("#source-pane"));
  press("1");
  say("tab", document.querySelector("#tabs [aria-selected=true]").dataset.stage);
  const field = document.getElementById("search");
  field.value = "kernel";
  field.dispatchEvent(new Event("input"));
  say("found", document.getElementById("found").textContent);
  field.value = "consumers";
  field.dispatchEvent(new Event("input"));
  for (let i = 0; i < 40 && !document.querySelector(".found"); ++i)
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const inCard = document.querySelector(".found");
  say("incard", Boolean(inCard) && inCard.getBoundingClientRect().height > 0);
  const shares = [...document.querySelectorAll("#summary h3")].find((h) => h.textContent.startsWith("Where the predicted"));
  say("sum", [...shares.parentElement.querySelectorAll("tbody tr")].reduce((sum, row) =>
    sum + Number(row.lastChild.textContent.replace(" %", "")), 0));
  say("wide", document.documentElement.scrollWidth <= document.documentElement.clientWidth);
  say("broken", String(window.broken));
  say("shown", document.getElementById("source-pane").textContent.includes("HOSTILE-TEXT"));
  say("problems", problems.join("; ") || "none");
});
</script>
"""


def run(*arguments):
    return subprocess.run([TKC, *map(str, arguments)], capture_output=True, text=True, check=False)


def tkc(*arguments):
    done = run(*arguments)
    if done.returncode != 0:
        sys.exit(f"tkc {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(f"not so: {what}")


def options(name, **others):
    sizes = {**dict(size.split("=") for size in SIZES[name]), **others}
    sizes = [word for dim, size in sizes.items() for word in ("--dim", f"{dim}={size}")]
    return [EXAMPLES / f"{name}.tk", "--target", "sm_90a", *sizes]


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
    # Without the online form the scores are stored.
    expect(without["tk-online-reductions"] > 1.2 * choices["own_us"], (choices["own_us"], without))
    # Both times of each tensor that is inlined: what is stored takes a launch more.
    fusions = {choice["tensor"]: choice for choice in choices["fusions"]}
    expect(set(fusions) == {remark["tensor"] for remark in document["remarks"] if remark["tensor"]}, fusions)
    expect(fusions["p"]["inlined_us"] == choices["own_us"] and fusions["p"]["stored_us"] > 1.2 * choices["own_us"], fusions)
    times = [other["us"] for other in choices["schedules"]]
    expect(all(time < 1.5 * choices["own_us"] and abs(time / choices["own_us"] - 1) > 0.001 for time in times), times)
    expect(times and times == sorted(times) and all(" = " in other["entries"] for other in choices["schedules"]), times)


def check_document(name, has_nvrtc):
    document = json.loads(tkc("view", *options(name), "--json", *([] if name == "attention" else ["--quick"])))
    expect(("choices" in document) == (name == "attention"), f"{name}: --quick leaves choices out")
    check_changes(name, document)
    expect(document["format"] == "tk-view 1" and document["dims"]["D" if name == "attention" else SIZES[name][0][0]],
           document["dims"])
    check_maps(document)
    stages = check_stages(document, name)
    report = json.loads(tkc("inspect", *options(name), "--json", *([] if has_nvrtc else ["--cost"])))
    expect(len(report["launches"]) == len(document["launches"]), "as many launches as inspect has")
    for seen, launch in zip(document["launches"], report["launches"]):
        expect(seen["symbol"] == launch["symbol"] and seen["plan"] == launch["plan"], seen["symbol"])
        for key, value in seen["cost"].items():
            expect(launch[key] == value, f"{name}: {key} is {launch[key]} for inspect, {value} for view")
        expect(abs(sum(seen["time_shares"]) - 1) < 1e-6 and min(seen["time_shares"]) >= 0, seen["time_shares"])
        expect(len(seen["time_shares"]) == len(document["places"]) + 1, "a share for each place, and one for none")
        expect({tensor["name"] for tensor in seen["cost"]["tensors"]}, "bytes by tensor")
        if has_nvrtc:
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
    if has_nvrtc:
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
    for name, document in documents.items():
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


def check_bytes(name, document):
    """The bytes that the program needs are those that bench counts."""
    line = json.loads(tkc("bench", *options(name)[:1], *options(name)[3:], "--target", "cpu", "--rounds", "1", "--json"))
    expect(abs(line["bytes"] - document["total"]["needed_bytes"]) <= 1e-5 * line["bytes"], line)


def check_diff(root, document):
    def diff(changed, *more):
        (root / "a.json").write_text(json.dumps(document))
        (root / "b.json").write_text(json.dumps(changed))
        return run("view", "--diff", root / "a.json", root / "b.json", *more)

    same = diff(document)
    expect((same.returncode, same.stdout) == (0, "no difference\n"), same)
    expect(json.loads(diff(document, "--json").stdout) == {"changes": [], "grown": False}, "no change as JSON")
    slower = json.loads(json.dumps(document))
    slower["launches"][0]["cost"]["predicted_us"] *= 1.1
    found = diff(slower)
    expect(found.returncode == 1 and "(+10.0 %), grew" in found.stdout, found)
    expect(diff(slower, "--tolerance", "11").returncode == 0, "a tolerance allows growth")
    found = diff(slower, "--json")
    changes = json.loads(found.stdout)["changes"]
    expect(found.returncode == 1 and changes[0]["grew"] and changes[0]["what"].endswith("predicted time"), changes)
    symbol = document["launches"][0]["symbol"]
    measured = {**document, "profile": {"total_us": 10, "launches": [{"symbol": symbol, "us": 9}]}}
    (root / "measured.json").write_text(json.dumps(measured))
    (root / "later.json").write_text(json.dumps(
        {**measured, "profile": {"total_us": 10, "launches": [{"symbol": symbol, "us": 10}]}}))
    found = run("view", "--diff", root / "measured.json", root / "later.json", "--tolerance", "10")
    expect(found.returncode == 1 and f"{symbol}: measured time: 9 -> 10 us (+11.1 %), grew" in found.stdout, found)
    faster = json.loads(json.dumps(document))
    faster["total"]["predicted_us"] *= 0.5
    expect(diff(faster).returncode == 0 and "(-50.0 %)" in diff(faster).stdout, "less is no failure")
    for change, message in (({"kernel": "other"}, "different kernels"), ({"target": "sm_80"}, "different targets"),
                            ({"dims": {}}, "different sizes"), ({"format": "x"}, "the second file is no document"),
                            ({"total": None}, "the second document has no predicted time")):
        wrong = diff({**document, **change})
        expect(wrong.returncode == 1 and message in wrong.stderr, (message, wrong))
    (root / "b.json").write_text("{")
    wrong = run("view", "--diff", root / "a.json", root / "b.json")
    expect(wrong.returncode == 1 and "is no JSON" in wrong.stderr, wrong)
    wrong = run("view", "--diff", root / "a.json", root / "none.json")
    expect(wrong.returncode != 0 and "none.json" in wrong.stderr, wrong)


def check_refusals(root):
    (root / "twice.tk").write_text(HOSTILE)
    wrong = run("view", root / "twice.tk", "--dim", "N=6", "--target", "sm_90a", "--json")
    expect(wrong.returncode == 1 and "N % 4 == 0" in wrong.stderr and not wrong.stdout, wrong)
    for arguments in ([], ["--diff", "one.json"], [root / "twice.tk", "--diff", "a", "b"],
                      ["--diff", "a", "b", "--tolerance", "-1"], ["--diff", "a", "b", "--tolerance", "nan"],
                      ["--diff", "a", "b", "-o", "c"], [root / "twice.tk", "--tolerance", "1"],
                      [root / "twice.tk", "--in", "x=iota"], [root / "twice.tk", "--profile", "--profile-from", "a"]):
        wrong = run("view", *arguments)
        expect(wrong.returncode == 2 and wrong.stderr, (arguments, wrong))
    wrong = run("view", root / "twice.tk", "--target", "sm_90a", "-o", root / "no" / "page.html")
    expect(wrong.returncode == 3, wrong)
    wrong = run("view", root / "twice.tk", "--target", "sm_90a", "-o", root / "." / "twice.tk")
    expect(wrong.returncode == 1 and "-o would replace" in wrong.stderr and (root / "twice.tk").read_text() == HOSTILE, wrong)
    open_sizes = json.loads(tkc("view", root / "twice.tk", "--target", "sm_90a", "--json"))
    expect(open_sizes["total"] is None and open_sizes["launches"][0]["grid"][0] is None, "sizes are not known")
    expect("choices" not in open_sizes, "choices want sizes")
    on_cpu = json.loads(tkc("view", root / "twice.tk", "--target", "cpu", "--dim", "N=8", "--json"))
    expect(on_cpu["launches"] == [] and next(s for s in on_cpu["stages"] if s["name"] == "cuda")["missing"], "cpu")
    on_emu = json.loads(tkc("view", root / "twice.tk", "--target", "emu", "--dim", "N=8", "--json"))
    expect("emulator" in next(s for s in on_emu["stages"] if s["name"] == "ptx")["missing"], "emu")


def dumped(browser, address, folder, width=1300):
    """The document after its program has run, and what the browser said."""
    folder.mkdir()
    # Without folders of its own, a browser whose home cannot be written ends before it loads a page.
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    # A browser reserves more addresses than tests may have; what it may have at most is left to it.
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    # Processes that the browser leaves behind may hold a pipe open, but not a file.
    with (folder / "dom.html").open("wb") as output, (folder / "log").open("wb") as log:
        try:
            problem = str(subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--disable-crash-reporter", f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1000",
                 "--dump-dom", address], stdout=output, stderr=log, check=False, timeout=120, env=environment,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most))))
        except subprocess.TimeoutExpired as late:
            problem = str(late)
    said = (folder / "log").read_text(errors="replace")[-2000:]
    return (folder / "dom.html").read_text(errors="replace"), f"{problem}\n{said}"


def check_profile(root, has_nvrtc):
    """What is measured: on the emulator, from a recorded document, and from a report of Nsight Compute."""
    sized = [root / "twice.tk", "--dim", "N=64", "--quick"]
    measured = json.loads(tkc("view", *sized, "--target", "emu", "--profile", "--in", "x=iota", "--json"))
    profile = measured["profile"]
    expect(profile["device"] == "the emulator" and profile["total_us"] > 0 and "emulator" in profile["stalls_missing"], profile)
    expect([time["symbol"] for time in profile["launches"]] == [launch["symbol"] for launch in measured["launches"]] and
           profile["launches"][0]["us"] > 0, profile)
    (root / "measured.json").write_text(json.dumps({**measured, "target": "sm_90a"}))
    again = json.loads(tkc("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "--json"))
    expect(again["profile"] == profile, again["profile"])
    page = tkc("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "-o", "-")
    expect('"profile":{' in page, "the page has the profile")
    for arguments, message in (((*sized, "--target", "sm_80", "--profile-from", root / "measured.json"), "is of target 'sm_90a'"),
                               ((root / "twice.tk", "--dim", "N=128", "--target", "sm_90a", "--quick", "--profile-from",
                                 root / "measured.json"), "is of other sizes"),
                               ((*sized, "--target", "sm_90a", "--profile-from", root / "a.json"), "has no profile"),
                               ((*sized, "--target", "cpu", "--profile"), "target 'cpu' has none")):
        wrong = run("view", *arguments, "--json")
        expect(wrong.returncode == 1 and message in wrong.stderr, (message, wrong))
    if re.search(r"^gpu +none|no GPU|no NVIDIA", tkc("doctor"), re.M):
        wrong = run("view", *sized, "--target", "sm_90a", "--profile", "--json")
        expect(wrong.returncode == 3 and wrong.stderr and not wrong.stdout, wrong)
    sass = next(stage for stage in again["stages"] if stage["name"] == "sass")
    if not has_nvrtc or sass["missing"]:
        (root / "report.csv").write_text("nothing\n")
        wrong = run("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "--stalls", root / "report.csv",
                    "--json")
        expect(wrong.returncode == 1 and "nvdisasm" in wrong.stderr, wrong)
        print("left out, as there is no machine code as text: samples by line")
        return
    code = [line for line in sass["text"].split("\n") if re.match(r"\s+/\*[0-9a-f]+\*/.*;", line)]
    rows = ["==PROF== Disconnected", f'"Kernel Name","{again["launches"][0]["symbol"]}"',
            '"#","Address","Source","# Samples","stall_long_sb","stall_math","stall_math (not issued)"']
    rows += [f'"{i}","{i * 16}","{line.strip()[:20]}","3","1,000" if i == 0 else "0","2","7"'.replace('"1,000" if i == 0 else "0"',
             '"1,000"' if i == 0 else '"0"') for i, line in enumerate(code)]
    (root / "report.csv").write_text("\n".join(rows) + "\n")
    sampled = json.loads(tkc("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "--stalls",
                             root / "report.csv", "--json"))["profile"]
    stalls = sampled["stalls"]
    expect(stalls["reasons"] == ["long_sb", "math"] and stalls["samples"] == 1000 + 2 * len(code), stalls)
    expect(sum(row[0] for row in stalls["by_place"]) == 1000 and sum(row[1] for row in stalls["by_place"]) == 2 * len(code), stalls)
    expect(len(stalls["by_place"]) == len(again["places"]) + 1 and "stalls_missing" not in sampled, stalls)
    (root / "report.csv").write_text("nothing\n")
    wrong = run("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "--stalls", root / "report.csv", "--json")
    expect(wrong.returncode == 1 and "no samples of this kernel" in wrong.stderr, wrong)


def in_browser(browser, page, line, root, width=1300):
    watched_text = page.read_text().replace('<script type="application/json"', WATCH.replace("LINE", str(line)).replace(
        "HOSTILE-TEXT", "<\\/script><script>window.broken" if "twice" in page.name else "kernel") +
        '<script type="application/json"', 1)
    watched = root / f"watched-{page.name}"
    watched.write_text(watched_text)
    body, problem = None, ""
    # A loaded machine may make a browser late; what the page does is judged where it has run.
    for attempt in range(3):
        text, problem = dumped(browser, watched.as_uri(), root / f"{page.stem}-{width}-{attempt}", width)
        body = re.search(r"<body ([^>]*)>", text)
        if body and "data-problems" in body[1]:
            break
    expect(body, f"{page.name} loads: {problem}")
    said = dict(re.findall(r'data-([\w-]+)="([^"]*)"', body[1]))
    expect(said.get("problems") == "none", said)
    expect(said["hottest"] == "2" and said["head"] == "0" and said["faster"] == "true", said)
    expect(int(said["source"]) == 1 and int(said["stage"]) > 0 and int(said["details"]) == 1, said)
    expect(int(said["back"]) >= 1 and said["escaped"] == "0" and int(said["key"]) == 1, said)
    expect(said["kept"] == "true" and abs(float(said["sum"]) - 100) < 1.5, said)
    if "attention" in page.name:
        expect("warpgroup_mma" in said["cursor"] and int(said["runs"]) == 4 and said["incard"] == "true", said)
    expect(said["tab"] == "tk" and " of " in said["found"] and said["wide"] == "true", said)
    expect(said["broken"] == "undefined" and said["shown"] == "true", said)


def check_pages(root):
    tkc("view", root / "twice.tk", "--target", "sm_90a", "--dim", "N=1024", "-o", root / "twice.html")
    tkc("view", *options("attention"), "-o", root / "attention.html")
    for page in (root / "twice.html", root / "attention.html"):
        text = page.read_text()
        expect(len(text) < 3e6, f"{page.name} has {len(text)} bytes")
        expect(text.count("</script>") == 3 and "<!--" not in text, "no text of the program ends an element")
        expect(not re.search(r"<(link|img|iframe)|\bsrc=\"?http|@import|url\(", text.split('id="document"')[0]),
               "the page needs no other file")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("left out, as there is no Chromium: what the page does")
        return
    in_browser(browser, root / "twice.html", 3, root)
    in_browser(browser, root / "attention.html", 8, root)
    in_browser(browser, root / "attention.html", 8, root, width=500)


def main():
    doctor = tkc("doctor")
    has_nvrtc = not re.search(r"^nvrtc +none", doctor, re.M)
    if not has_nvrtc:
        print("left out, as there is no NVRTC: PTX, SASS and what code uses")
    # A process of the browser may still write into its profile.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = pathlib.Path(folder)
        documents = {name: check_document(name, has_nvrtc) for name in SIZES}
        check_time(documents)
        check_schedule(root, documents)
        check_fused(documents)
        check_bytes("layernorm", documents["layernorm"])
        check_diff(root, documents["layernorm"])
        # So many keys that a launch more is little beside what the choices cost.
        check_choices(json.loads(tkc("view", *options("attention", S=2048, T=2048), "--json")))
        check_refusals(root)
        check_profile(root, has_nvrtc)
        check_pages(root)


main()
