"use strict";
// Texts of which only the lines in sight are in the page. Stands before page.js in the same script.

const ROW = 18;          // pixels of a line, as in page.css

let marked = new Set();  // places
let near = new Set();    // places below the pointer
const listings = [];     // all that show lines

/** A text of which only the visible lines are in the page. */
class Listing {
  constructor(text, linesOf, options = {}) {
    this.lines = text.replace(/\n$/, "").split("\n");
    this.linesOf = linesOf;
    this.shareOf = options.shareOf;
    this.weightOf = options.weightOf || (() => 0); // what a mark is shown for: the heaviest first
    this.folded = new Set();
    this.hits = new Set();
    this.sheet = make("div", { class: "sheet" });
    this.element = make("div", { class: "code tall", tabindex: "0", role: "list",
                                 "aria-label": options.label || "" }, this.sheet);
    this.top = 0;        // where it was scrolled to: an element outside of the page forgets it
    this.element.addEventListener("scroll", () => {
      if (this.element.isConnected) this.top = this.element.scrollTop;
      this.render();
    });
    this.listen();
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
    if (!this.element.isConnected) return; // it is made once it is shown
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
    if (this.cursor === line) names.push("cursor");
    const fold = make("span", { class: "fold", "aria-hidden": "true" },
                      this.endOf.has(line) ? (this.folded.has(line) ? "\u25b8" : "\u25be") : "");

    const row = make("div", { class: names.join(" "), role: "listitem", "data-line": line + 1 },
      make("span", { class: "at" }, String(line + 1)),
      this.shareOf ? make("span", { class: "share" }, this.shareOf(line)) : null,
      fold,
      make("span", { class: "text" }, this.lines[line] + (this.folded.has(line) ? " \u2026" : "")));
    row.style.top = `${at * ROW}px`;
    return row;
  }

  /** The line of the row in which something happens; nothing between rows. */
  lineAt(event) {
    const row = event.target.closest(".row");
    return row ? Number(row.dataset.line) - 1 : undefined;
  }

  listen() {
    this.element.addEventListener("mouseover", (event) => {
      const line = this.lineAt(event);
      if (line !== undefined) hover(new Set(this.linesOf(line)));
    });
    this.element.addEventListener("mouseleave", () => hover(new Set()));
    this.element.addEventListener("click", (event) => {
      const line = this.lineAt(event);
      if (line === undefined) return;
      if (event.target.classList.contains("fold") && this.endOf.has(line)) {
        if (!this.folded.delete(line)) this.folded.add(line);
        this.layOut();
        return;
      }
      const from = this.linesOf(line);
      if (!from.length || String(getSelection()) !== "") return;
      this.cursor = line;
      mark(new Set(from), this);
    });
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
    this.top = this.element.scrollTop;
    this.render();
  }

  /** Brings a column of the lines into sight, with some text before it. */
  showColumn(column) {
    const text = this.element.querySelector(".row .text");
    if (!text || column < 0) return;
    const pixels = text.getBoundingClientRect().width / Math.max(text.textContent.length, 1);
    const left = text.offsetLeft + column * pixels, width = this.element.clientWidth;
    if (left < this.element.scrollLeft || left + 20 * pixels > this.element.scrollLeft + width)
      this.element.scrollLeft = Math.max(left - width / 3, 0);
  }

  markedLines() {
    return this.lines.map((_, i) => i).filter((i) => this.linesOf(i).some((p) => marked.has(p)));
  }

  /** Marked lines that follow one another, as the first and the last of each run. Folded lines between them do not part them. */
  runs() {
    const runs = [];
    for (const line of this.markedLines()) {
      const last = runs[runs.length - 1];
      if (last && this.isNext(last.to, line)) last.to = line;
      else runs.push({ from: line, to: line });
    }
    return runs;
  }

  /** Are there only lines without a place between two lines? */
  isNext(before, behind) {
    for (let line = before + 1; line < behind; ++line) if (this.linesOf(line).length) return false;
    return true;
  }

  /** The heaviest marked line; of several, the first of which the most fit into the window together. */
  heaviest(marks) {
    const heaviest = Math.max(...marks.map(this.weightOf));
    const lines = marks.filter((line) => this.weightOf(line) === heaviest);
    const height = Math.max(Math.floor((this.element.clientHeight || 600) / ROW), 1);
    let best = 0, most = 0;
    for (let begin = 0, end = 0; begin < lines.length; ++begin) {
      while (end < lines.length && lines[end] < lines[begin] + height) ++end;
      if (end - begin > most) { most = end - begin; best = begin; }
    }
    return lines[best];
  }

  /** Puts the cursor on the heaviest marked line. */
  showMarked() {
    const lines = this.markedLines();
    this.cursor = lines.length ? this.heaviest(lines) : undefined;
    if (lines.length) this.show(this.cursor);
    else this.render();
  }

  /** Scrolls to where the listing was, once it is in the page again. */
  restore() {
    this.element.scrollTop = this.top;
    this.render();
  }

  /** The next run of marked lines behind the cursor, or the one before it. */
  step(direction) {
    const runs = this.runs();
    if (!runs.length) return;
    const at = this.cursor ?? -1;
    const behind = runs.findIndex((run) => run.from > at);
    const before = runs.findLastIndex((run) => run.to < at);
    const next = direction > 0 ? (behind < 0 ? 0 : behind) : (before < 0 ? runs.length - 1 : before);
    this.cursor = runs[next].from;
    this.show(this.cursor);
  }
}
