// The cards of the kernel and of its launches. Stands behind page.js in the same script.

// ---- Cards of launches ----------------------------------------------------------------------------

function table(head, rows) {
  const isNumber = (i) => rows.every((row) => /^[-\d.,\u2009]*( [kMGTP]?(B|%)| \u00b5s| ms)?$/.test(row[i] ?? ""));
  const cell = (tag, text, i) => make(tag, isNumber(i) ? { class: "number" } : {}, text ?? "");
  return make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((text, i) => cell("th", text, i)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((text, i) => cell("td", text, i)))))));
}

function listOf(facts) {
  return make("dl", {}, ...facts.filter(([, text]) => text).flatMap(
    ([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
}

function sharedBytes(launch) {
  return (launch.code ? launch.code.static_shared : 0) + (launch.dynamic_shared || 0);
}

/** What the roofs and the point of the roofline are. */
function rooflineText(cost) {
  const { bytes_per_us: bandwidth, operations_per_us: roof, operations_of: unit } = cost.roofs;
  const reached = cost.operations / cost.predicted_us;
  return `Roofs: ${withPrefix(bandwidth * 1e6, "B/s")} of device memory, and ${unit} at ${withPrefix(roof * 1e6, "op/s")}, the rates ` +
    `of ${view.total.device}. Point: ${withPrefix(reached * 1e6, "op/s")}, ${percent(reached, roof)} of the upper roof.`;
}

/** The launch below the roofs of the machine: the rates of device memory, and of the fastest unit that the launch uses. */
function roofline(cost) {
  const moved = cost.read_bytes + cost.written_bytes;
  const { bytes_per_us: bandwidth, operations_per_us: roof, operations_of: unit } = cost.roofs;
  if (!(moved > 0 && bandwidth > 0 && roof > 0 && cost.operations > 0)) return null;
  const intensity = cost.operations / moved, reached = cost.operations / cost.predicted_us;
  const ridge = roof / bandwidth;
  const low = Math.log10(Math.min(intensity, ridge)) - 0.8, high = Math.log10(Math.max(intensity, ridge)) + 0.8;
  const top = Math.log10(roof) + 0.35;
  const bottom = Math.min(Math.log10(bandwidth) + low, Math.log10(reached) - 0.3);
  const x = (value) => 54 + 300 * (value - low) / (high - low);
  const y = (value) => 10 + 120 * (top - value) / (top - bottom);
  const svg = draw("svg", { viewBox: "0 0 372 166", role: "img", "aria-label":
    `Roofline: ${withPrefix(reached * 1e6, "operations a second")} at ${intensity.toPrecision(3)} operations a byte` });
  svg.append(draw("path", { class: "axis", d: "M54 10 V130 H354" }),
    draw("path", { class: "roof", d: `M${x(low)} ${y(Math.log10(bandwidth) + low)} ` +
      `L${x(Math.log10(ridge))} ${y(Math.log10(roof))} H354` }));
  for (let power = Math.ceil(low); power <= high; ++power)
    svg.append(draw("text", { x: x(power), y: 143, "text-anchor": "middle" }, String(Number((10 ** power).toPrecision(1)))));
  for (let power = Math.ceil(bottom); power <= top; ++power)
    svg.append(draw("text", { x: 50, y: y(power) + 3, "text-anchor": "end" },
                    withPrefix(10 ** (power + 6), "").trim()));
  svg.append(
    draw("text", { x: 204, y: 160, "text-anchor": "middle" }, "operations a byte of device memory"),
    draw("text", { transform: "translate(10 70) rotate(-90)", "text-anchor": "middle" }, "operations a second"),
    draw("text", { x: 354, y: y(Math.log10(roof)) - 7, "text-anchor": "end" },
         `${withPrefix(roof * 1e6, "op/s")}: ${unit} of ${view.total.device}`),
    draw("circle", { class: "point", r: 4, cx: x(Math.log10(intensity)), cy: y(Math.log10(reached)) }));
  return svg;
}

function costParts(launch) {
  const { cost } = launch;
  const parts = Object.entries(cost.parts_us).filter(([, time]) => time > 0).sort((a, b) => b[1] - a[1]);
  const most = parts.length ? parts[0][1] : 1;
  return make("table", {}, make("tbody", {}, ...parts.map(([name, time]) => {
    const meter = make("div", { class: "meter" });
    meter.style.width = `${100 * time / most}%`;
    const bar = make("td", {}, meter);
    bar.style.width = "50%";
    return make("tr", {}, make("td", {}, name), make("td", { class: "number" }, micros(time)), bar);
  })));
}

/** How a launch's time is the sum of others. */
function sumText(cost) {
  const { latency } = cost.parts_us;
  return `${micros(cost.predicted_us)} = ${micros(cost.launch_us)} until the first block starts + ${micros(cost.begin_us)} while the ` +
    `first blocks start and the last ones end + ${micros(cost.overlapped_us)} of the parts that overlap` +
    (latency > 0 ? ` + ${micros(latency)} of latency` : "") +
    ". Parts overlap: their time together is the fourth root of the sum of their fourth powers, latency left out.";
}

/** Parts of a launch's time that contain the factor of uneven work. */
const unevenParts = ["L1 and shared memory", "matrix unit", "CUDA cores", "special functions"];
/** A factor below this is no matter. */
const leastUneven = 1.02;

/** By how much the busiest multiprocessor has more than an even share, and which schedules change that. */
function unevenText(launch) {
  const { uneven, parts_us, heaviest, blocks, multiprocessors } = launch.cost;
  if (!(uneven > leastUneven)) return "";
  const parts = unevenParts.filter((part) => parts_us[part] > 0);
  const isLongest = view.launches.every((other) => other.cost.predicted_us <= launch.cost.predicted_us);
  const others = view.choices && isLongest ? view.choices.schedules
    .filter((other) => Math.abs(other.uneven / view.choices.own_uneven - 1) > 0.02)
    .map((other) => `${other.entries}: ${Number(other.uneven.toPrecision(3))}`) : [];
  return `${Number(uneven.toPrecision(3))}: the busiest of ${multiprocessors} multiprocessors has so many times an even share of the work` +
    (heaviest > Math.ceil(blocks / multiprocessors) ? ", as some blocks have more than others" :
     `, as ${plain(blocks)} blocks do not divide evenly`) + `. The times of ${parts.join(", ")} contain the factor` +
    (others.length ? `. Other schedules have others: ${others.join("; ")}` : "");
}

function shapeText(launch) {
  const isKnown = launch.grid.every((axis) => axis !== null);
  const used = (axes, least) => axes.slice(0, Math.max(least, 3 - [...axes].reverse().findIndex((a) => String(a) !== "1")));
  return isKnown ? used(launch.grid, 1).map(plain).join(" \u00d7 ") +
                   (launch.resident ? ", at most as many as run at once" : "")
                 : launch.grid_text.filter((text, i) => i === 0 || text !== "1").join(" \u00d7 ");
}

function launchCard(launch) {
  const { cost, code } = launch;
  const shared = sharedBytes(launch);
  const place = placeAt.get(`0:${launch.line}`);
  const card = make("article", { class: "card" }, make("h2", {}, launch.symbol, " ",
    place === undefined ? null : make("button", { type: "button", title: "Mark the line", onclick: () => mark(new Set([place]), null) },
      `${shortName(0)}:${launch.line}`), " ",
    make("button", { type: "button", title: "Show the launch in the CUDA text", onclick: () => showCode(launch) }, "Code")));
  if (cost) card.append(make("div", { class: "time" }, micros(cost.predicted_us),
    make("span", { class: "pass" }, ` predicted, bound by ${launch.cost.bound}`)),
    make("div", {}, movedText(cost)));
  const columns = make("div", { class: "columns" });
  columns.append(make("div", {}, listOf([
    ["Measured", measuredText(launch)],
    ["Grid", shapeText(launch)],
    ["Threads", `${launch.threads} a block` + (launch.cluster.some((n) => n > 1) ? `, clusters of ${launch.cluster.join("\u00d7")}` : "")],
    ["Registers", code && `${code.registers} a thread`],
    ["Spills", code && (code.spill_stores + code.spill_loads > 0
      ? `${code.spill_stores} bytes stored, ${code.spill_loads} loaded a thread` : "none")],
    ["Shared memory", `${plain(shared)} bytes a block`],
    ["Occupancy", code && code.blocks_per_sm > 0 && `${code.blocks_per_sm} block${code.blocks_per_sm > 1 ? "s" : ""} a multiprocessor, ` +
      `${Math.round(100 * code.occupancy)} % of its warps; limited by ${code.limiter}`],
    ["Waves", cost && Number(cost.waves.toPrecision(3)).toString()],
    ["Bytes", cost && `${bytes(cost.read_bytes)} read, ${bytes(cost.written_bytes)} written, ${bytes(cost.l2_bytes)} through L2`],
  ])));
  const long = listOf([
    ["Uneven work", cost && unevenText(launch)],
    ["Operations", cost && withPrefix(cost.operations, "").trim() + ` (matrix unit ${Object.entries(cost.matrix_multiply_adds)
      .map(([type, count]) => `${withPrefix(count, "").trim()} multiply-adds of ${type}`).join(", ") || "none"}, ` +
      `CUDA cores ${withPrefix(cost.core_instructions, "").trim()} instructions, special functions ${withPrefix(cost.special_functions, "").trim()})`],
    ["Behind the sums", launch.epilogue && `${launch.epilogue}, before a result is stored`],
    ["Before the products", launch.prologue],
    ["Plan", launch.plan],
    ["Pipeline", launch.pipeline],
  ]);
  if (cost) {
    columns.append(make("div", {}, make("h3", {}, "Time that each part would take alone"), costParts(launch),
      make("div", { class: "pass" }, sumText(cost))));
    const picture = roofline(cost);
    if (picture) columns.append(make("div", {}, make("h3", {}, "Roofline"), picture,
      make("div", { class: "pass" }, rooflineText(cost))));
  }
  card.append(columns, long);
  for (const note of cost ? cost.notes : []) card.append(make("div", { class: "bad" }, note));
  if (cost && cost.tensors.length) card.append(bytesTable(cost));
  card.append(make("details", {}, make("summary", {}, `${launch.arguments.length} arguments`),
    table(["name", "is", "value"], launch.arguments.map((argument) => [argument.name, argument.is,
      argument.value === null ? "" : plain(argument.value)]))));
  return card;
}

const isRead = (tensor) => tensor.l2_read > 0 || tensor.read > 0;

/** What a launch has to read and write once each, and what it moves between device memory and the multiprocessors. */
function movedText(cost) {
  const needed = cost.tensors.reduce((sum, tensor) =>
    sum + (isRead(tensor) ? tensor.bytes : 0) + (tensor.written > 0 ? tensor.bytes : 0), 0);
  const moved = cost.read_bytes + cost.written_bytes;
  if (!(needed > 0)) return "";
  const inCache = cost.tensors.filter((tensor) => isRead(tensor) && tensor.read === 0).map((tensor) => tensor.name);
  return `Each tensor once: ${bytes(needed)}. Device memory moves ${bytes(moved)}, ${(moved / needed).toFixed(2)} times that` +
    (inCache.length ? `: ${inCache.join(" and ")} ${inCache.length > 1 ? "are" : "is"} still in L2 from an earlier launch` : "") +
    `. L2 hands out ${bytes(cost.l2_bytes)}, ${(cost.l2_bytes / needed).toFixed(2)} times that.`;
}

function bytesTable(cost) {
  return make("div", {}, make("h3", {}, "Bytes by tensor"),
    table(["tensor", "size", "read from memory", "written", "read from L2", "L2 reads of an element"], cost.tensors.map((tensor) => [
      tensor.name, bytes(tensor.bytes), isRead(tensor) ? (tensor.read > 0 ? bytes(tensor.read) : "0 B") : "",
      tensor.written > 0 ? bytes(tensor.written) : "", tensor.l2_read > 0 ? bytes(tensor.l2_read) : "",
      tensor.bytes > 0 && tensor.l2_read > 0 ? Number((tensor.l2_read / tensor.bytes).toPrecision(3)).toString() : ""])),
    make("div", { class: "pass" }, "\u201cL2 reads of an element\u201d is what the blocks read from L2, over the tensor's size: so many blocks read an element. " +
      "0 B from memory: an earlier launch has left the tensor in L2."));
}

/** Where the predicted time goes: each line, each launch's overhead, and what no line has. The shares add up. */
function timeTable() {
  const total = view.total.predicted_us, rows = [];
  const add = (what, us) => { if (us > 0.0005 * total) rows.push([what, micros(us), percent(us, total)]); };
  timeOf.map((us, place) => [us, place]).sort((a, b) => b[0] - a[0]).forEach(([us, place]) =>
    add(`${shortName(view.places[place].file)}:${view.places[place].line}`, us));
  const launching = view.launches.reduce((sum, launch) => sum + fixedTime(launch.cost), 0);
  add(view.launches.length > 1 ? `starting and ending ${view.launches.length} launches` : "starting and ending the launch", launching);
  add("of no line", total - launching - timeOf.reduce((sum, us) => sum + us, 0));
  return make("div", {}, make("h3", {}, "Where the predicted time goes"), table(["line", "predicted", "share"], rows));
}

function kernelCard() {
  const total = view.total;
  const stored = view.scratch.map((buffer) =>
    `${buffer.bytes === null ? buffer.bytes_text + " bytes" : bytes(buffer.bytes)} (${buffer.purpose})`).join(", ");
  const card = make("article", { class: "card" }, make("h2", {}, "Kernel"));
  if (total) card.append(make("div", { class: "time" }, micros(total.predicted_us),
    make("span", { class: "pass" }, ` predicted on ${total.device}, ${view.launches.length} launch${view.launches.length > 1 ? "es" : ""}`)));
  card.append(listOf([
    ["Measured", view.profile && `${micros(view.profile.total_us)} a call on ${view.profile.device}` +
      (view.profile.stalls_missing ? `; no reasons of stalls: ${view.profile.stalls_missing}` : "")],
    ["Assumes", view.assumptions && `${view.assumptions}. A call with other sizes runs another variant, which is compiled at its ` +
      "first call (docs/how-to/warm-up.md)."],
    ["Refuses unless", view.checks.join(", ")],
    ["Program needs", total && `${bytes(total.needed_bytes)} moved, ${withPrefix(total.needed_operations, "").trim()} operations`],
    ["Operations done", total && total.recomputation > 0 && `${total.recomputation} for each operation of the program as written` +
      (total.recomputation > 1.005 ? " (values are computed again, or tiles reach beyond their tensors)" :
       total.recomputation < 0.995 ? " (masks and shared values leave some out)" : "")],
    ["Least time", total && leastText(total)],
    ["Stored between", stored || (view.launches.length ? "nothing" : "")],
  ]));
  if (!total && view.launches.length) card.append(make("div", { class: "pass" },
    "Predicted times and bytes are known once all dimensions are given with --dim."));
  if (total && view.launches.length) card.append(timeTable());
  for (const part of [launchReasons(), fasterChoices()]) if (part) card.append(part);
  if (view.schedule) card.append(scheduleBlock());
  if (view.remarks.length) card.append(make("details", {},
    make("summary", {}, factsSummary()), remarkList(view.remarks, null)));
  return card;
}

/** The least time of the program: a bound for the program as it is written, which a plan may get below by doing less. */
function leastText(total) {
  const bound = `${micros(total.least_us)}: ${micros(total.least_us - total.least_launch_us)} of ${total.least_bound}, for the bytes and ` +
    `operations of the program as it is written at the machine's full rates, and ${micros(total.least_launch_us)} of one launch`;
  const ratio = total.predicted_us / total.least_us;
  return ratio >= 1 ? `${bound}. The prediction is ${ratio.toFixed(2)} times that.`
    : `${bound}. The prediction is ${ratio.toFixed(2)} times that: the plan does some operations on another unit, or leaves them out.`;
}

function scheduleBlock() {
  const file = view.files[0].name;
  const sizes = Object.entries(view.dims).map(([name, size]) => ` --dim ${name}=${size}`).join("");
  const command = `tkc tune ${file} --kernel ${view.kernel} --target gpu${sizes}`;
  const same = { "": "The plan with this block is the plan of this page." }[view.schedule_plan] ||
    (view.schedule_plan ? `The plan with this block differs: ${view.schedule_plan}` : "");
  return make("details", {}, make("summary", {}, "A schedule block to begin with"),
    make("pre", {}, view.schedule), copyButton(() => view.schedule), make("div", { class: "pass" }, same),
    make("div", { class: "pass" }, "tile: elements of a block's tile by index. stages, if added: tiles of the circular buffer in shared memory. " +
      "consumers: warpgroups of a block that multiply; one further warpgroup loads for them. teams: warpgroups with a tile each. " +
      "raster: the order in which blocks walk the tiles. persistent: blocks stay for several tiles."),
    make("h3", {}, "Search for a faster one on a GPU"), make("pre", {}, command), copyButton(() => command));
}

/** Which tensors are stored between the launches, and why; null of one launch. */
function launchReasons() {
  if (view.launches.length < 2) return null;
  const isReason = (remark) => (remark.verdict === "declined" && remark.tensor) ||
    /split|flatten|materialize|store|parts/.test(remark.pass);
  const reasons = view.remarks.filter(isReason);
  return reasons.length ? make("div", {}, make("h3", {}, `Why there are ${view.launches.length} launches`), remarkList(reasons, null)) : null;
}

/** What would make a launch with this bound faster. */
function remedyOf(bound) {
  return {
    "memory": "fewer bytes of device memory would make it faster: narrower types, or fusion with what runs before or behind it",
    "L2": "fewer bytes through L2 would make it faster: larger tiles, or clusters that share what they read",
    "matrix unit": "fewer products, or products of narrower types, would make it faster",
    "CUDA cores": "fewer instructions for each element would make it faster",
    "special functions": "fewer exponentials and the like would make it faster",
    "L1 and shared memory": "fewer bytes through shared memory, and fewer or wider loads and stores, would make it faster: other tiles, " +
      "neighbouring threads at neighbouring addresses",
    "latency": "more independent work at a time would make it faster: more or smaller tiles, or larger sizes",
  }[bound];
}

/** What the predictions say of a faster kernel, the launch that takes longest first. */
function fasterChoices() {
  if (!view.total || !view.launches.length) return null;
  const slowest = [...view.launches].sort((a, b) => b.cost.predicted_us - a.cost.predicted_us)[0];
  const { predicted_us } = slowest.cost, { bound } = slowest.cost;
  const facts = [`${slowest.symbol} takes ${percent(predicted_us, view.total.predicted_us)} of the predicted time and is bound by ` +
    `${bound}` + (remedyOf(bound) ? `: ${remedyOf(bound)}.` : ".")];
  const { choices } = view;
  const ratio = (us) => againstPlan(us);
  const isFaster = (us) => us !== null && us < 0.98 * choices.own_us;
  if (choices) {
    const before = facts.length;
    for (const other of choices.schedules.filter((choice) => isFaster(choice.us)).slice(0, 3))
      facts.push(`${other.entries} is predicted to take ${ratio(other.us)}. The planner follows its rule instead: ${other.rule}. ` +
        "tkc tune measures such schedules.");
    for (const fusion of choices.fusions)
      for (const [us, flag] of [[fusion.stored_us, "--store"], [fusion.inlined_us, "--inline"],
        [fusion.apart_us, "--apart"], [fusion.merged_us, "--merge"]])
        if (us !== undefined && isFaster(us)) facts.push(`${flag} ${fusion.tensor} is predicted to take ${ratio(us)}.`);
    for (const other of choices.without.filter((choice) => isFaster(choice.us)))
      facts.push(`--disable-pass ${other.pass} is predicted to take ${ratio(other.us)}.`);
    if (facts.length === before) facts.push("No schedule that differs in one entry, and no other choice of what is stored, is predicted to be faster.");
  }
  for (const launch of view.launches)
    for (const note of launch.cost.notes) facts.push(`${launch.symbol}: ${note}`);
  return make("div", {}, make("h3", {}, "What would make it faster"),
    make("ul", {}, ...facts.map((fact) => make("li", {}, fact))));
}

/** The steps of one rank of a mesh, which run in this order. */
function meshCard() {
  const { mesh, network, steps, total_us, hidden_us } = view.mesh;
  const card = make("article", { class: "card" }, make("h2", {}, `One rank of mesh ${mesh}`));
  card.append(make("div", { class: "time" }, micros(total_us),
    make("span", { class: "pass" }, ` predicted on ${network}` + (hidden_us > 0 ? `; ${micros(hidden_us)} of transfers run beside launches` : ""))));
  const time = (value) => value > 0 ? micros(value) : "";
  card.append(table(["step", "tensor", "T_math", "T_memory", "T_comms", "hidden", "time", "bound"], steps.map((step) => [
    step.step, step.tensor, time(step.math_us), time(step.memory_us), time(step.comms_us), time(step.hidden_us),
    time(step.total_us), step.bound])));
  return card;
}

