"use strict";
// The page of tkc view. All text of the program and of the stages reaches the page as text nodes.
const view = JSON.parse(document.getElementById("document").textContent);
const ROW = 18;        // pixels of a line, as in page.css
const titles = { tk: "Tensor IR", fused: "Fused IR", tiled: "Block IR", gpu: "GPU IR", cuda: "CUDA",
                 ptx: "PTX", sass: "SASS" };
const byId = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function draw(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// ---- Numbers -----------------------------------------------------------------------------------

function withPrefix(value, unit) {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let i = 0;
  while (value >= 1000 && i + 1 < prefixes.length) { value /= 1000; ++i; }
  return `${value >= 100 ? value.toFixed(0) : Number(value.toPrecision(3))} ${prefixes[i]}${unit}`;
}
const bytes = (value) => withPrefix(value, "B");
const micros = (value) => value >= 1000 ? `${Number((value / 1000).toPrecision(4))} ms`
                                        : `${Number(value.toPrecision(4))} \u00b5s`;
const percent = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(part / whole < 0.1 ? 1 : 0)} %` : "";
const plain = (value) => value.toLocaleString("en-US").replace(/,/g, "\u2009");

// ---- Places: lines of the source, by file and line ------------------------------------------------

const placeAt = new Map(view.places.map((place, i) => [`${place.file}:${place.line}`, i]));
const instructionTotals = view.instructions &&
  view.instructions.by_place.map((counts) => counts.reduce((a, b) => a + b, 0));
const allInstructions = instructionTotals ? instructionTotals.reduce((a, b) => a + b, 0) : 0;
// Microseconds that the operations of each line take of the predicted time; launching itself is no line's.
const timeOf = view.total && view.places.map((_, place) => view.launches.reduce(
  (sum, launch) => sum + launch.time_shares[place] * (launch.cost.predicted_us - launch.cost.launch_us), 0));
const remarksOf = (place) => view.remarks.filter(
  (remark) => remark.line === view.places[place].line &&
    remark.file === view.files[view.places[place].file].name);

// ---- Listings ----------------------------------------------------------------------------------

let marked = new Set();  // places
let near = new Set();    // places below the pointer
const listings = [];     // all that show lines

/** A text of which only the visible lines are in the page. */
class Listing {
  constructor(text, linesOf, options = {}) {
    this.lines = text.replace(/\n$/, "").split("\n");
    this.linesOf = linesOf;
    this.shareOf = options.shareOf;
    this.folded = new Set();
    this.hits = new Set();
    this.sheet = make("div", { class: "sheet" });
    this.element = make("div", { class: "code tall", tabindex: "0", role: "list",
                                 "aria-label": options.label || "" }, this.sheet);
    this.element.addEventListener("scroll", () => this.render());
    this.element.addEventListener("mouseleave", () => hover(new Set()));
    const longest = this.lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.sheet.style.width = `calc(${longest + 2}ch + 110px)`;
    this.findBlocks();
    this.layOut();
  }

  /** The end of the block that each line begins: the lines behind it that are indented deeper. */
  findBlocks() {
    this.endOf = new Map();
    const open = [];
    const indents = this.lines.map((line) => line.trim() === "" ? -1 : line.search(/\S/));
    indents.forEach((indent, i) => {
      if (indent < 0) return;
      while (open.length && open[open.length - 1].indent >= indent) {
        const begun = open.pop();
        if (i - begun.line > 2) this.endOf.set(begun.line, i);
      }
      open.push({ line: i, indent });
    });
    for (const begun of open)
      if (this.lines.length - begun.line > 2) this.endOf.set(begun.line, this.lines.length);
  }

  layOut() {
    this.shown = [];
    for (let i = 0; i < this.lines.length; ++i) {
      this.shown.push(i);
      if (this.folded.has(i)) i = this.endOf.get(i) - 1;
    }
    this.sheet.style.height = `${this.shown.length * ROW}px`;
    this.render();
  }

  render() {
    const height = this.element.clientHeight || 600;
    const first = Math.max(Math.floor(this.element.scrollTop / ROW) - 10, 0);
    const last = Math.min(first + Math.ceil(height / ROW) + 20, this.shown.length);
    const rows = [];
    for (let at = first; at < last; ++at) rows.push(this.row(this.shown[at], at));
    this.sheet.replaceChildren(...rows);
  }

  row(line, at) {
    const from = this.linesOf(line);
    const names = ["row"];
    if (from.length) names.push("linked");
    if (from.some((place) => marked.has(place))) names.push("marked");
    else if (from.some((place) => near.has(place))) names.push("near");
    if (this.hits.has(line)) names.push("hit");
    const fold = make("span", { class: "fold", "aria-hidden": "true" },
                      this.endOf.has(line) ? (this.folded.has(line) ? "\u25b8" : "\u25be") : "");
    if (this.endOf.has(line)) fold.addEventListener("click", (event) => {
      event.stopPropagation();
      if (!this.folded.delete(line)) this.folded.add(line);
      this.layOut();
    });
    const row = make("div", { class: names.join(" "), role: "listitem", "data-line": line + 1 },
      make("span", { class: "at" }, String(line + 1)),
      this.shareOf ? make("span", { class: "share" }, this.shareOf(line)) : null,
      fold,
      make("span", { class: "text" }, this.lines[line] + (this.folded.has(line) ? " \u2026" : "")));
    row.style.top = `${at * ROW}px`;
    row.addEventListener("mouseenter", () => hover(new Set(from)));
    row.addEventListener("click", () => {
      if (from.length && String(getSelection()) === "") mark(new Set(from), this);
    });
    return row;
  }

  /** Brings a line into sight, and unfolds what hides it. */
  show(line) {
    for (const begun of [...this.folded])
      if (begun < line && line < this.endOf.get(begun)) this.folded.delete(begun);
    this.layOut();
    const at = this.shown.indexOf(line), height = this.element.clientHeight;
    const top = at * ROW;
    if (top < this.element.scrollTop || top + ROW > this.element.scrollTop + height)
      this.element.scrollTop = Math.max(top - height / 3, 0);
    this.render();
  }

  markedLines() {
    return this.lines.map((_, i) => i).filter((i) => this.linesOf(i).some((p) => marked.has(p)));
  }

  /** The first of the marked lines of which the most fit into the window together. */
  densest(lines) {
    const height = Math.max(Math.floor((this.element.clientHeight || 600) / ROW), 1);
    let best = 0, most = 0;
    for (let begin = 0, end = 0; begin < lines.length; ++begin) {
      while (end < lines.length && lines[end] < lines[begin] + height) ++end;
      if (end - begin > most) { most = end - begin; best = begin; }
    }
    return lines[best];
  }

  showMarked() {
    const lines = this.markedLines();
    const first = Math.floor(this.element.scrollTop / ROW);
    const last = first + Math.floor(this.element.clientHeight / ROW);
    const isInSight = lines.some((line) => {
      const at = this.shown.indexOf(line);
      return at >= first && at < last;
    });
    if (lines.length && !isInSight) this.show(this.densest(lines));
    else this.render();
  }

  /** The next marked line behind the one that was shown, or the one before it. */
  step(direction) {
    const lines = this.markedLines();
    if (!lines.length) return;
    this.stepAt = ((this.stepAt ?? (direction > 0 ? -1 : 0)) + direction + lines.length) % lines.length;
    this.show(lines[this.stepAt]);
  }
}

function hover(places) {
  if (places.size === near.size && [...places].every((place) => near.has(place))) return;
  near = places;
  for (const listing of listings) listing.render();
}

function mark(places, from) {
  marked = places;
  for (const listing of listings) {
    listing.stepAt = undefined;
    if (listing === from) listing.render();
    else listing.showMarked();
  }
  showLine();
}

// ---- The panes -----------------------------------------------------------------------------------

function copyButton(text) {
  return make("button", { type: "button", onclick: async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text());
    } catch (failed) { // pages from files may have no clipboard
      const area = make("textarea", {});
      area.value = text();
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1200);
  } }, "Copy");
}

const sources = [];
function addSources() {
  const used = new Set(view.places.map((place) => place.file));
  view.files.forEach((file, number) => {
    if (number !== 0 && !used.has(number)) return;
    const at = (line) => {
      const place = placeAt.get(`${number}:${line + 1}`);
      return place === undefined ? [] : [place];
    };
    const listing = new Listing(file.text, at, {
      label: file.name,
      shareOf: (timeOf || instructionTotals) && ((line) => {
        const place = at(line)[0];
        if (place === undefined) return "";
        if (timeOf) return timeOf[place] > 0 ? percent(timeOf[place], view.total.predicted_us) : "";
        return instructionTotals[place] ? percent(instructionTotals[place], allInstructions) : "";
      }) });
    listings.push(listing);
    sources.push(listing);
    listing.element.classList.add("source");
    listing.element.style.height = `min(44vh, ${listing.lines.length * ROW + 18}px)`;
    byId("source-pane").append(
      make("div", { class: "bar" }, make("span", { class: "name" }, file.name),
           timeOf ? make("span", { class: "pass", title:
             "The share that the line's operations have in the predicted time" }, "% of time") :
           instructionTotals ? make("span", { class: "pass", title:
             "The share of the instructions of the " + titles[view.instructions.stage] +
             " text that come from the line" }, "% of " + titles[view.instructions.stage]) : null,
           copyButton(() => file.text)),
      listing.element);
  });
}

const stageListings = new Map();
let currentStage = null;
function showStage(name) {
  const stage = view.stages.find((candidate) => candidate.name === name);
  if (!stage) return;
  currentStage = name;
  for (const tab of document.querySelectorAll("#tabs [role=tab]"))
    tab.setAttribute("aria-selected", String(tab.dataset.stage === name));
  if (stage.missing || !stage.text) {
    byId("stage").replaceChildren(make("div", { class: "missing" },
      `There is no ${titles[name] || name}: ${stage.missing || "the text is empty"}`));
    return;
  }
  if (!stageListings.has(name)) {
    const listing = new Listing(stage.text, (line) => stage.lines[line] || [],
                                { label: titles[name] || name });
    listings.push(listing);
    stageListings.set(name, listing);
  }
  byId("stage").replaceChildren(stageListings.get(name).element);
  stageListings.get(name).showMarked();
}

function addTabs() {
  view.stages.forEach((stage, i) => {
    byId("tabs").append(make("button", { type: "button", role: "tab", "data-stage": stage.name,
      "aria-selected": "false", title: `Key ${i + 1}`, onclick: () => showStage(stage.name) },
      titles[stage.name] || stage.name));
  });
  const fold = make("button", { type: "button", title: "Fold or unfold all blocks", onclick: () => {
    const listing = stageListings.get(currentStage);
    if (!listing) return;
    const isFolded = listing.folded.size > 0;
    listing.folded.clear();
    if (!isFolded) {
      const outer = Math.min(...[...listing.endOf.keys()].map((line) => listing.lines[line].search(/\S/)));
      for (const line of listing.endOf.keys())
        if (listing.lines[line].search(/\S/) > outer) listing.folded.add(line);
    }
    listing.layOut();
  } }, "Fold");
  byId("tabs").append(make("span", { class: "space" }), fold,
    copyButton(() => view.stages.find((stage) => stage.name === currentStage).text));
}

// ---- Search and keys ------------------------------------------------------------------------------

let hits = [], hitAt = -1;
function search(text) {
  const wanted = text.toLowerCase();
  hits = [];
  hitAt = -1;
  for (const listing of listings) listing.hits.clear();
  if (wanted) {
    for (const stage of view.stages)
      stage.text.split("\n").forEach((line, i) => {
        if (line.toLowerCase().includes(wanted)) hits.push({ stage: stage.name, line: i });
      });
    sources.forEach((listing) => listing.lines.forEach((line, i) => {
      if (line.toLowerCase().includes(wanted)) hits.push({ source: listing, line: i });
    }));
    // Those in what is shown come first.
    const rank = (hit) => hit.source ? 0 : hit.stage === currentStage ? 1 : 2;
    hits.sort((a, b) => rank(a) - rank(b));
  }
  byId("found").textContent = wanted ? `${plain(hits.length)} hits` : "";
  if (hits.length) nextHit();
  else for (const listing of listings) listing.render();
}

function nextHit() {
  if (!hits.length) return;
  hitAt = (hitAt + 1) % hits.length;
  const hit = hits[hitAt];
  if (hit.stage && hit.stage !== currentStage) showStage(hit.stage);
  const listing = hit.source || stageListings.get(hit.stage);
  for (const other of listings) other.hits.clear();
  listing.hits.add(hit.line);
  listing.show(hit.line);
  byId("found").textContent = `${plain(hitAt + 1)} of ${plain(hits.length)}`;
}

/** Marks the next line of the source that has something behind it. */
function moveLine(direction) {
  const order = view.places.map((_, i) => i).sort((a, b) =>
    view.places[a].file - view.places[b].file || view.places[a].line - view.places[b].line);
  if (!order.length) return;
  const at = order.findIndex((place) => marked.has(place));
  const next = at < 0 ? (direction > 0 ? 0 : order.length - 1) : (at + direction + order.length) % order.length;
  mark(new Set([order[next]]), null);
}

/** Begins with the line that takes the most of the predicted time; the stage stays at its head. */
function chooseHottest() {
  if (!timeOf) return;
  const hottest = timeOf.indexOf(Math.max(...timeOf));
  if (!(timeOf[hottest] > 0)) return;
  marked = new Set([hottest]);
  for (const listing of listings) listing.render();
  showLine();
}

function onKey(event) {
  if (event.target instanceof HTMLInputElement) {
    if (event.key === "Enter") nextHit();
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const stage = view.stages[Number(event.key) - 1];
  const listing = stageListings.get(currentStage);
  if (event.key === "/") { event.preventDefault(); byId("search").focus(); }
  else if (event.key === "j") moveLine(1);
  else if (event.key === "k") moveLine(-1);
  else if (event.key === "n" && listing) listing.step(1);
  else if (event.key === "p" && listing) listing.step(-1);
  else if (event.key === "Escape") mark(new Set(), null);
  else if (stage) showStage(stage.name);
}

function start() {
  document.title = `${view.kernel} for ${view.target}`;
  byId("title").textContent = `${view.kernel} for ${view.target}`;
  const sizes = Object.entries(view.dims).map(([name, size]) => `${name} = ${size}`).join(", ");
  byId("subtitle").textContent = view.signature + (sizes ? ` with ${sizes}` : "");
  byId("headline").textContent = view.total
    ? `${micros(view.total.predicted_us)} predicted on ${view.total.device}: ` + view.launches
        .map((launch) => `${launch.symbol} ${micros(launch.cost.predicted_us)}, bound by ${launch.cost.bound}`).join("; ")
    : "";
  byId("summary").append(kernelCard(), ...(view.mesh ? [meshCard()] : []), ...view.launches.map(launchCard));
  addSources();
  addTabs();
  const shown = view.stages.find((stage) => stage.name === "cuda" && stage.text) || view.stages.find((s) => s.text);
  if (shown) showStage(shown.name);
  for (const listing of listings) listing.layOut();
  chooseHottest();
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  });
  byId("help").addEventListener("click", (event) => {
    byId("keys").hidden = !byId("keys").hidden;
    event.currentTarget.setAttribute("aria-expanded", String(!byId("keys").hidden));
  });
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => { for (const listing of listings) listing.render(); });
  if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";
}

start();
