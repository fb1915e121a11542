"""tkc view: what the page does in a browser.

usage: check_view_page.py TKC EXAMPLES [--times]

--times also prints how long the pages of four kernels take to load. The page's behaviour is left out, with a note, where
there is no Chromium.
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from tool_tests import expect, tkc
from view_tests import EXAMPLES, HOSTILE, options

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
  // Each hit is in the window, wherever the page was scrolled to by the one before.
  field.value = "s";
  field.dispatchEvent(new Event("input"));
  let outside = 0;
  for (let i = 0; i < 30; ++i) {
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    const hit = document.querySelector(".row.hit .text") || document.querySelector(".found");
    const box = hit ? hit.getBoundingClientRect() : { top: -1, bottom: -1 };
    const frame = hit && hit.closest(".code") ? hit.closest(".code").getBoundingClientRect() : { top: 0, bottom: innerHeight };
    if (box.top < Math.max(frame.top, 0) - 1 || box.bottom > Math.min(frame.bottom, innerHeight) + 1) ++outside;
  }
  say("outside", outside);
  // A fact about a tensor stands at the line that defines it, too, and the page says how times add up.
  const facts = (line) => {
    press("Escape");
    rows().find((row) => Number(row.dataset.line) === line).click();
    return document.getElementById("line").textContent;
  };
  say("defined", rows().length > 9 ? facts(9).includes("'m' is computed where 'lse'") : "none");
  const cards = document.getElementById("summary").textContent;
  for (const [key, text] of Object.entries({ sum: "of the parts that overlap", roof: "on the matrix unit of H200",
    axis: "operations a second", block: "The plan with this block is the plan of this page", uneven: "contain the factor",
    stages: "shared memory has no room for the plan's 4", label: "multiply-adds of bf16", least: "of one launch" }))
    say("says-" + key, cards.includes(text));
  const lists = [...document.querySelectorAll("#summary details")].find((d) => d.textContent.includes(" that the passes derived"));
  const says = (item, { text, line }) => text.split("'").every((part) => item.textContent.includes(part)) &&
    [...item.querySelectorAll(".at-line")].some((button) => button.textContent === String(line));
  say("unlisted", JSON.parse(document.getElementById("document").textContent).remarks.filter((remark) =>
    ![...lists.querySelectorAll("li")].some((item) => says(item, remark))).length);
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
        expect(said["defined"] == "true" and [key for key in said if key.startswith("says-") and said[key] != "true"] == [], said)
    expect(said["outside"] == "0" and said["unlisted"] == "0", said)
    expect(said["tab"] == "tk" and " of " in said["found"] and said["wide"] == "true", said)
    expect(said["broken"] == "undefined" and said["shown"] == "true", said)


def find_browser():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def check_pages(root):
    tkc("view", root / "twice.tk", "--target", "sm_90a", "--dim", "N=1024", "-o", root / "twice.html")
    tkc("view", *options("attention"), "-o", root / "attention.html")
    for page in (root / "twice.html", root / "attention.html"):
        text = page.read_text()
        expect(len(text) < 3e6, f"{page.name} has {len(text)} bytes")
        expect(text.count("</script>") == 3 and "<!--" not in text, "no text of the program ends an element")
        expect(not re.search(r"<(link|img|iframe)|\bsrc=\"?http|@import|url\(", text.split('id="document"')[0]),
               "the page needs no other file")
    browser = find_browser()
    if not browser:
        print("left out, as there is no Chromium: what the page does")
        return
    in_browser(browser, root / "twice.html", 3, root)
    in_browser(browser, root / "attention.html", 8, root)
    in_browser(browser, root / "attention.html", 8, root, width=500)


# Of pages whose load is measured.
TIMED = {
    "gemm": ("M=8192", "N=8192", "K=8192"),
    "attention": ("B=4", "H=32", "S=4096", "T=4096", "G=8", "D=128", "E=128"),
    "layernorm": ("R=16384", "C=8192"),
    "linear_gelu": ("M=8192", "N=14336", "K=4096"),
    "conv2d": ("N=32", "C=64", "H=56", "W=56", "O=64", "R=3", "S=3"),
}
LOADED = """<script>addEventListener("load", () => document.body.setAttribute("data-loaded", performance.now()));</script>
"""


def print_times(root, browser):
    """The size of each page, and the time from its address to the end of its program, the least of five."""
    for name, sizes in TIMED.items():
        words = [word for size in sizes for word in ("--dim", size)]
        text = tkc("view", EXAMPLES / f"{name}.tk", "--target", "sm_90a", *words, "-o", "-")
        page = root / f"{name}.html"
        page.write_text(text.replace('<script type="application/json"', LOADED + '<script type="application/json"', 1))
        times = []
        for number in range(5):
            body, problem = dumped(browser, page.as_uri(), root / f"{name}-{number}")
            found = re.search(r'data-loaded="([\d.]+)"', body)
            expect(found, f"{name} loads: {problem}")
            times.append(float(found[1]))
        print(f"{name}: {len(text) / 1e6:.2f} MB, {min(times):.0f} ms")


def main():
    # A process of the browser may still write into its profile.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = pathlib.Path(folder)
        (root / "twice.tk").write_text(HOSTILE)
        check_pages(root)
        if "--times" in sys.argv:
            print_times(root, find_browser())


main()
