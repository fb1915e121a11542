"""tkc view: the document, the page and the comparison of two documents.

usage: check_view.py TKC EXAMPLES

Machine code is left out, with a note, where there is no NVRTC, and the page's behaviour where there is no
Chromium, or one that cannot show an empty page.
"""
import json
import os
import pathlib
import re
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
  const rows = () => [...document.querySelectorAll("#source-pane .row")];
  const count = (where) => document.querySelectorAll(where + " .row.marked").length;
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  rows().find((row) => Number(row.dataset.line) === LINE).click();
  say("source", count("#source-pane"));
  say("stage", count("#stage"));
  say("details", document.querySelectorAll("#line .card").length);
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


def options(name):
    sizes = [word for size in SIZES[name] for word in ("--dim", size)]
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
    else:
        expect(matrix == len(re.findall(r"^\s*(?:wgmma\.mma_async|mma\.sync)", text, re.M)), matrix)
        expect(total > 20, total)
    expect(".loc" not in stages["ptx"]["text"] and ".file" not in stages["ptx"]["text"], "PTX without places")


def check_document(name, has_nvrtc):
    document = json.loads(tkc("view", *options(name), "--json"))
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
        expect(document["schedule"].startswith(f"schedule {document['kernel']} {{\n  tile "), document["schedule"])
        (root / "block.tk").write_text(document["schedule"])
        again = json.loads(tkc("view", *options(name), "--schedule", root / "block.tk", "--json"))
        expect([launch["plan"] for launch in again["launches"]] == [launch["plan"] for launch in document["launches"]],
               f"{name}: {document['schedule']}")


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
    slower = json.loads(json.dumps(document))
    slower["launches"][0]["cost"]["predicted_us"] *= 1.1
    found = diff(slower)
    expect(found.returncode == 1 and "(+10.0 %), grew" in found.stdout, found)
    expect(diff(slower, "--tolerance", "11").returncode == 0, "a tolerance allows growth")
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
                      ["--diff", "a", "b", "--tolerance", "-1"]):
        wrong = run("view", *arguments)
        expect(wrong.returncode == 2 and wrong.stderr, (arguments, wrong))
    wrong = run("view", root / "twice.tk", "--target", "sm_90a", "-o", root / "no" / "page.html")
    expect(wrong.returncode == 3, wrong)
    open_sizes = json.loads(tkc("view", root / "twice.tk", "--target", "sm_90a", "--json"))
    expect(open_sizes["total"] is None and open_sizes["launches"][0]["grid"][0] is None, "sizes are not known")
    on_cpu = json.loads(tkc("view", root / "twice.tk", "--target", "cpu", "--dim", "N=8", "--json"))
    expect(on_cpu["launches"] == [] and next(s for s in on_cpu["stages"] if s["name"] == "cuda")["missing"], "cpu")
    on_emu = json.loads(tkc("view", root / "twice.tk", "--target", "emu", "--dim", "N=8", "--json"))
    expect("emulator" in next(s for s in on_emu["stages"] if s["name"] == "ptx")["missing"], "emu")


def dumped(browser, address, folder, width=1300):
    """The document after its program has run, and what the browser said."""
    folder.mkdir()
    # Without folders of its own, a browser whose home cannot be written ends before it loads a page.
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    # Processes that the browser leaves behind may hold a pipe open, but not a file.
    with (folder / "dom.html").open("wb") as output, (folder / "log").open("wb") as log:
        try:
            problem = str(subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--disable-crash-reporter", f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1000",
                 "--dump-dom", address], stdout=output, stderr=log, check=False, timeout=120, env=environment))
        except subprocess.TimeoutExpired as late:
            problem = str(late)
    said = (folder / "log").read_text(errors="replace")[-2000:]
    return (folder / "dom.html").read_text(errors="replace"), f"{problem}\n{said}"


def starts(browser, root):
    """Whether the browser shows a page without any content of ours."""
    blank = root / "blank.html"
    blank.write_text("<!doctype html><title>blank</title><body data-blank=yes>")
    for attempt in range(3):
        text, problem = dumped(browser, blank.as_uri(), root / f"blank-{attempt}")
        if "data-blank" in text:
            return True
    print(f"left out, as {browser} does not show an empty page here: what the page does\n{problem}")
    return False


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
    expect(int(said["source"]) == 1 and int(said["stage"]) > 0 and int(said["details"]) == 1, said)
    expect(int(said["back"]) >= 1 and said["escaped"] == "0" and int(said["key"]) == 1, said)
    expect(said["tab"] == "tk" and " of " in said["found"] and said["wide"] == "true", said)
    expect(said["broken"] == "undefined" and said["shown"] == "true", said)


def check_pages(root):
    tkc("view", root / "twice.tk", "--target", "sm_90a", "--dim", "N=1024", "-o", root / "twice.html")
    tkc("view", *options("attention"), "-o", root / "attention.html")
    for page in (root / "twice.html", root / "attention.html"):
        text = page.read_text()
        expect(len(text) < 3e6, f"{page.name} has {len(text)} bytes")
        expect(text.count("</script>") == 2 and "<!--" not in text, "no text of the program ends an element")
        expect(not re.search(r"<(link|img|iframe)|\bsrc=\"?http|@import|url\(", text.split('id="document"')[0]),
               "the page needs no other file")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("left out, as there is no Chromium: what the page does")
        return
    if not starts(browser, root):
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
        check_bytes("layernorm", documents["layernorm"])
        check_diff(root, documents["layernorm"])
        check_refusals(root)
        check_pages(root)


main()
