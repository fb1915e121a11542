// The page of tkc view, behind listing.js in the same script. All text of the program and of the stages reaches the
// page as text nodes.
const view = JSON.parse(document.getElementById("document").textContent);
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
/** A number with thin spaces between thousands; the browser's own formatter takes long to begin. */
const plain = (value) => String(value).replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, "\u2009"));

// ---- Places: lines of the source, by file and line ------------------------------------------------

const placeAt = new Map(view.places.map((place, i) => [`${place.file}:${place.line}`, i]));
/** What a launch takes whatever it does: until its first block starts, and while the first and the last ones do. */
const fixedTime = (cost) => cost.launch_us + cost.begin_us;
/** Microseconds of a launch that the operations of a line take. */
const timeIn = (launch, place) => launch.time_shares[place] * (launch.cost.predicted_us - fixedTime(launch.cost));
const instructionTotals = view.instructions &&
  view.instructions.by_place.map((counts) => counts.reduce((a, b) => a + b, 0));
const allInstructions = instructionTotals ? instructionTotals.reduce((a, b) => a + b, 0) : 0;
// Microseconds that the operations of each line take of the predicted time; launching itself is no line's.
const timeOf = view.total && view.places.map((_, place) => view.launches.reduce(
  (sum, launch) => sum + timeIn(launch, place), 0));
/** Facts that passes have at a line, and those about the tensor that the line defines. */
const remarksOf = (place) => view.remarks.filter((remark) => {
  const { file, line } = view.places[place];
  return (remark.line === line && remark.file === view.files[file].name) || (file === 0 && remark.defined_line === line);
});

/** A file's name without its folders, where no other file of the page has the same one. */
function shortName(file) {
  const last = (name) => name.split("/").pop();
  const { name } = view.files[file];
  return view.files.filter((other) => last(other.name) === last(name)).length > 1 ? name : last(name);
}

// ---- Marks ---------------------------------------------------------------------------------------

function hover(places) {
  if (places.size === near.size && [...places].every((place) => near.has(place))) return;
  near = places;
  for (const listing of listings) listing.render();
}

function mark(places, from) {
  marked = places;
  for (const listing of listings) {
    listing.isStale = listing !== from;
    if (listing === from) listing.render();
    else if (listing.element.isConnected) settle(listing);
  }
  showLine();
}

/** Shows the marks of a listing once; later it stays where the reader has left it. */
function settle(listing) {
  if (listing.isStale) listing.showMarked();
  else listing.restore();
  listing.isStale = false;
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
      make("div", { class: "bar" }, make("span", { class: "name", title: file.name }, shortName(number)),
           timeOf ? make("span", { class: "pass", title:
             "The share that the line's operations have in the predicted time" }, "% of time") :
           instructionTotals ? make("span", { class: "pass", title:
             "The share of the instructions of the " + titles[view.instructions.stage] +
             " text that come from the line" }, "% of " + titles[view.instructions.stage]) : null,
           copyButton(() => file.text)),
      listing.element);
  });
}

/** Names of operations and instructions, the ones that a reader looks for first before others. */
const heavyNames = [/warpgroup_(mma|dot)|wgmma\.mma|mma\.sync|tk::mma|[HIQ]GMMA|[HIDQ]MMA|tkgpu\.dot/,
  /bulk_(load|copy)|load_async|copy_async|cp\.async\.bulk\.tensor|cp\.async\.c[ag]|UTMALDG|LDGSTS/,
  /tk::load|tkgpu\.load|tk\.load|ld\.global|\bLDG\b|LDG\./,
  /exp|ex2|MUFU|rsqrt/, /tk::store|bulk_store|tkgpu\.store|st\.global|\bSTG\b|STG\.|UTMASTG/];

/** A function from a line of a stage to its weight: its launch's share of the predicted time, then the operation, then the
    number of loops around it. */
function weightsOf(stage) {
  let weights;
  return (line) => (weights ??= allWeights(stage))[line];
}

function allWeights(stage) {
  const begins = new Map(view.launches.map((launch) => [launch,
    new RegExp(`^${launch.symbol}\\(|\\.entry ${launch.symbol}\\b|func @${launch.symbol}\\b|^\\.text\\.${launch.symbol}:`)]));
  const loops = [];
  let share = 0;
  return stage.text.split("\n").map((text) => {
    for (const [launch, begin] of begins)
      if (begin.test(text)) share = view.total ? launch.cost.predicted_us / view.total.predicted_us : 1;
    const indent = text.search(/\S/);
    while (indent >= 0 && loops.length && loops[loops.length - 1] >= indent) loops.pop();
    const depth = loops.length;
    if (/\b(for|while)\b.*\{$/.test(text)) loops.push(indent);
    const isComment = /^\s*\/\//.test(text);
    const rank = isComment ? -1 : heavyNames.findIndex((names) => names.test(text));
    return Math.round(1000 * share) * 100 + (rank < 0 ? 0 : heavyNames.length - rank) * 10 + Math.min(depth, 9);
  });
}

/** The line of the CUDA text, or of the stage in its place, with which a launch's code begins. */
function showCode(launch) {
  const stage = view.stages.find((candidate) => candidate.name === "cuda" && candidate.text);
  if (!stage) return;
  const line = stage.text.split("\n").findIndex((text) => text.startsWith(`${launch.symbol}(`));
  showStage(stage.name);
  const listing = stageListings.get(stage.name);
  listing.cursor = line;
  listing.show(line);
  byId("stage-pane").scrollIntoView({ block: "nearest" });
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
                                { label: titles[name] || name, weightOf: weightsOf(stage) });
    listing.isStale = isStarted && marked.size > 0; // the page begins with the stage's head
    listings.push(listing);
    stageListings.set(name, listing);
  }
  byId("stage").replaceChildren(stageListings.get(name).element);
  settle(stageListings.get(name));
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
  dropCardHit();
  for (const listing of listings) listing.hits.clear();
  if (wanted) {
    for (const stage of view.stages)
      stage.text.split("\n").forEach((line, i) => {
        if (line.toLowerCase().includes(wanted)) hits.push({ stage: stage.name, line: i });
      });
    sources.forEach((listing) => listing.lines.forEach((line, i) => {
      if (line.toLowerCase().includes(wanted)) hits.push({ source: listing, line: i });
    }));
    const walker = document.createTreeWalker(byId("summary"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode())
      if (walker.currentNode.textContent.toLowerCase().includes(wanted)) hits.push({ card: walker.currentNode.parentElement });
    // Those in what is shown come first.
    const rank = (hit) => hit.source ? 0 : hit.stage === currentStage ? 1 : hit.card ? 2 : 3;
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
  for (const other of listings) other.hits.clear();
  dropCardHit();
  byId("found").textContent = `${plain(hitAt + 1)} of ${plain(hits.length)}`;
  if (hit.card) {
    for (let at = hit.card; at; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
    hit.card.classList.add("found");
    hit.card.scrollIntoView({ block: "center" });
    for (const listing of listings) listing.render();
    return;
  }
  if (hit.stage && hit.stage !== currentStage) showStage(hit.stage);
  const listing = hit.source || stageListings.get(hit.stage);
  listing.hits.add(hit.line);
  listing.show(hit.line);
  listing.showColumn(listing.lines[hit.line].toLowerCase().indexOf(byId("search").value.toLowerCase()));
  // A hit before may have scrolled the page away from the texts.
  listing.element.scrollIntoView({ block: "nearest" });
}

function dropCardHit() {
  for (const found of document.querySelectorAll(".found")) found.classList.remove("found");
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

/** The line that takes the most of the predicted time, with which the page begins. */
function hottestLine() {
  if (!timeOf) return new Set();
  const hottest = timeOf.indexOf(Math.max(...timeOf));
  return new Set(timeOf[hottest] > 0 ? [hottest] : []);
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

let isStarted = false;
let isThemeChosen = false; // by the button: the system's changes no longer count
function setTheme(isDark) {
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}

function start() {
  document.title = `${view.kernel} for ${view.target}`;
  byId("title").textContent = `${view.kernel} for ${view.target}`;
  const sizes = Object.entries(view.dims).map(([name, size]) => `${name} = ${size}`).join(", ");
  byId("subtitle").textContent = view.signature + (sizes ? ` with ${sizes}` : "");
  byId("headline").textContent = view.total
    ? view.launches.length === 1 ? `${micros(view.total.predicted_us)} predicted on ${view.total.device}, bound by ${view.launches[0].cost.bound}`
    : `${micros(view.total.predicted_us)} predicted on ${view.total.device}: ` + view.launches
        .map((launch) => `${launch.symbol} ${micros(launch.cost.predicted_us)}, bound by ${launch.cost.bound}`).join("; ")
    : "";
  // Each list of lines is made once, and the cards, which are long, come when nothing asks for the layout any more.
  marked = hottestLine();
  addSources();
  addTabs();
  const shown = view.stages.find((stage) => stage.name === "cuda" && stage.text) || view.stages.find((s) => s.text);
  if (shown) showStage(shown.name);
  for (const listing of sources) listing.render();
  showLine();
  isStarted = true;
  byId("summary").append(kernelCard(), ...(view.mesh ? [meshCard()] : []), ...view.launches.map(launchCard));
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("theme").addEventListener("click", () => {
    isThemeChosen = true;
    setTheme(document.documentElement.dataset.theme !== "dark");
  });
  byId("help").addEventListener("click", (event) => {
    byId("keys").hidden = !byId("keys").hidden;
    event.currentTarget.setAttribute("aria-expanded", String(!byId("keys").hidden));
  });
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => { for (const listing of listings) listing.render(); });
  const system = matchMedia("(prefers-color-scheme: dark)");
  setTheme(system.matches);
  system.addEventListener("change", () => { if (!isThemeChosen) setTheme(system.matches); });
}
