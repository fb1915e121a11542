// The cards of the chosen line, of the kernel and of its launches. Stands behind page.js in the same script.

// ---- Cards of launches ----------------------------------------------------------------------------

function table(head, rows) {
  const isNumber = (i) => rows.every((row) => /^[-\d.,\u2009]*( [kMGTP]?(B|%)| \u00b5s| ms)?$/.test(row[i] ?? ""));
  const cell = (tag, text, i) => make(tag, isNumber(i) ? { class: "number" } : {}, text ?? "");
  return make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((text, i) => cell("th", text, i)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((text, i) => cell("td", text, i))))));
}

function listOf(facts) {
  return make("dl", {}, ...facts.filter(([, text]) => text).flatMap(
    ([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
}

/** The launch below its roofline: the roofs are the rates at which this launch's work would run alone. */
function roofline(cost) {
  const moved = cost.read_bytes + cost.written_bytes, memory = cost.parts_us.memory;
  const unit = Math.max(cost.parts_us["matrix unit"], cost.parts_us["CUDA cores"],
                        cost.parts_us["special functions"]);
  if (!(moved > 0 && memory > 0 && unit > 0 && cost.operations > 0)) return null;
  const bandwidth = moved / memory, roof = cost.operations / unit;           // per microsecond
  const intensity = cost.operations / moved, reached = cost.operations / cost.predicted_us;
  const ridge = roof / bandwidth;
  const low = Math.log10(Math.min(intensity, ridge)) - 0.8, high = Math.log10(Math.max(intensity, ridge)) + 0.8;
  const top = Math.log10(roof) + 0.35;
  const bottom = Math.min(Math.log10(bandwidth) + low, Math.log10(reached) - 0.3);
  const x = (value) => 42 + 300 * (value - low) / (high - low);
  const y = (value) => 10 + 120 * (top - value) / (top - bottom);
  const svg = draw("svg", { viewBox: "0 0 360 166", role: "img", "aria-label":
    `Roofline: ${withPrefix(reached * 1e6, "operations a second")} at ${intensity.toPrecision(3)} operations a byte` });
  svg.append(draw("path", { class: "axis", d: "M42 10 V130 H342" }),
    draw("path", { class: "roof", d: `M${x(low)} ${y(Math.log10(bandwidth) + low)} ` +
      `L${x(Math.log10(ridge))} ${y(Math.log10(roof))} H342` }));
  for (let power = Math.ceil(low); power <= high; ++power)
    svg.append(draw("text", { x: x(power), y: 143, "text-anchor": "middle" }, String(Number((10 ** power).toPrecision(1)))));
  for (let power = Math.ceil(bottom); power <= top; ++power)
    svg.append(draw("text", { x: 38, y: y(power) + 3, "text-anchor": "end" },
                    withPrefix(10 ** (power + 6), "").trim()));
  svg.append(
    draw("text", { x: 192, y: 160, "text-anchor": "middle" }, "operations a byte of device memory"),
    draw("text", { x: 342, y: y(Math.log10(roof)) - 4, "text-anchor": "end" },
         `${withPrefix(roof * 1e6, "op/s")}: the busiest unit`),
    draw("circle", { class: "point", r: 4, cx: x(Math.log10(intensity)), cy: y(Math.log10(reached)) }));
  return svg;
}

function costParts(cost) {
  const parts = Object.entries(cost.parts_us).concat([["launch", cost.launch_us]])
    .filter(([, time]) => time > 0).sort((a, b) => b[1] - a[1]);
  const most = parts.length ? parts[0][1] : 1;
  return make("table", {}, make("tbody", {}, ...parts.map(([name, time]) => {
    const meter = make("div", { class: "meter" });
    meter.style.width = `${100 * time / most}%`;
    const bar = make("td", {}, meter);
    bar.style.width = "50%";
    return make("tr", {}, make("td", {}, name), make("td", { class: "number" }, micros(time)), bar);
  })));
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
  const shared = (code ? code.static_shared : 0) + (launch.dynamic_shared || 0);
  const card = make("article", { class: "card" }, make("h2", {}, launch.symbol));
  if (cost) card.append(make("div", { class: "time" }, micros(cost.predicted_us),
    make("span", { class: "pass" }, ` predicted, bound by ${cost.bound}`)));
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
    ["Operations", cost && withPrefix(cost.operations, "").trim() + ` (matrix unit ${Object.entries(cost.matrix_multiply_adds)
      .map(([type, count]) => `${withPrefix(count, "").trim()} multiply-adds of ${type}`).join(", ") || "none"}, ` +
      `CUDA cores ${withPrefix(cost.core_instructions, "").trim()} instructions, special functions ${withPrefix(cost.special_functions, "").trim()})`],
    ["Plan", launch.plan],
    ["Pipeline", launch.pipeline],
  ])));
  if (cost) {
    columns.append(make("div", {}, make("h3", {}, "Time that each part would take alone"), costParts(cost)));
    const picture = roofline(cost);
    if (picture) columns.append(make("div", {}, make("h3", {}, "Roofline"), picture));
  }
  card.append(columns);
  for (const note of cost ? cost.notes : []) card.append(make("div", { class: "bad" }, note));
  if (cost && cost.tensors.length) card.append(
    make("h3", {}, "Bytes by tensor"),
    table(["tensor", "size", "read", "written", "read through L2", "times"], cost.tensors.map((tensor) => [
      tensor.name, bytes(tensor.bytes), bytes(tensor.read), bytes(tensor.written), bytes(tensor.l2_read),
      tensor.bytes > 0 && tensor.l2_read > 0 ? Number((tensor.l2_read / tensor.bytes).toPrecision(3)).toString() : ""])));
  card.append(make("details", {}, make("summary", {}, `${launch.arguments.length} arguments`),
    table(["name", "is", "value"], launch.arguments.map((argument) => [argument.name, argument.is,
      argument.value === null ? "" : plain(argument.value)]))));
  return card;
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
    ["Assumes", view.assumptions],
    ["Refuses unless", view.checks.join(", ")],
    ["Program needs", total && `${bytes(total.needed_bytes)} moved, ${withPrefix(total.needed_operations, "").trim()} operations`],
    ["Operations done", total && total.recomputation > 0 && `${total.recomputation} for each operation of the program as written` +
      (total.recomputation > 1.005 ? " (values are computed again, or tiles reach beyond their tensors)" :
       total.recomputation < 0.995 ? " (masks and shared values leave some out)" : "")],
    ["No plan is faster than", total && `${micros(total.least_us)}: the bytes and operations that the program needs at the ` +
      `machine's full rates, bound by ${total.least_bound}. The prediction is ${(total.predicted_us / total.least_us).toFixed(2)} times that.`],
    ["Stored between", stored || (view.launches.length ? "nothing" : "")],
  ]));
  if (!total && view.launches.length) card.append(make("div", { class: "pass" },
    "Predicted times and bytes are known once all dimensions are given with --dim."));
  for (const part of [launchReasons(), fasterChoices()]) if (part) card.append(part);
  if (view.schedule) card.append(make("details", {}, make("summary", {}, "A schedule block to begin with"),
    make("pre", {}, view.schedule), copyButton(() => view.schedule)));
  if (view.remarks.length) card.append(make("details", {},
    make("summary", {}, `${view.remarks.length} facts that the passes derived or declined`), remarkList(view.remarks)));
  return card;
}

/** Which tensors are stored between the launches, and why; null of one launch. */
function launchReasons() {
  if (view.launches.length < 2) return null;
  const isReason = (remark) => (remark.verdict === "declined" && remark.tensor) ||
    /split|flatten|materialize|store|parts/.test(remark.pass);
  const reasons = view.remarks.filter(isReason);
  return reasons.length ? make("div", {}, make("h3", {}, `Why there are ${view.launches.length} launches`), remarkList(reasons)) : null;
}

/** What would make a launch with this bound faster. */
function remedyOf(bound) {
  return {
    "memory": "fewer bytes of device memory would make it faster: narrower types, or fusion with what runs before or behind it",
    "L2": "fewer bytes through L2 would make it faster: larger tiles, or clusters that share what they read",
    "matrix unit": "fewer products, or products of narrower types, would make it faster",
    "CUDA cores": "fewer instructions for each element would make it faster",
    "special functions": "fewer exponentials and the like would make it faster",
    "shared memory": "fewer bytes through shared memory would make it faster: other tiles",
    "latency": "more independent work at a time would make it faster: more or smaller tiles, or larger sizes",
  }[bound];
}

/** What the predictions say of a faster kernel, the launch that takes longest first. */
function fasterChoices() {
  if (!view.total || !view.launches.length) return null;
  const slowest = [...view.launches].sort((a, b) => b.cost.predicted_us - a.cost.predicted_us)[0];
  const { bound, predicted_us } = slowest.cost;
  const facts = [`${slowest.symbol} takes ${percent(predicted_us, view.total.predicted_us)} of the predicted time and is bound by ` +
    `${bound}` + (remedyOf(bound) ? `: ${remedyOf(bound)}.` : ".")];
  const { choices } = view;
  const ratio = (us) => `${micros(us)} for ${micros(choices.own_us)}`;
  const isFaster = (us) => us !== null && us < 0.98 * choices.own_us;
  if (choices) {
    const before = facts.length;
    for (const other of choices.schedules.filter((choice) => isFaster(choice.us)).slice(0, 3))
      facts.push(`The schedule entries ${other.entries} are predicted to be faster: ${ratio(other.us)}. tkc tune measures such schedules.`);
    for (const fusion of choices.fusions)
      for (const [us, flag] of [[fusion.stored_us, "--store"], [fusion.inlined_us, "--inline"],
        [fusion.apart_us, "--apart"], [fusion.merged_us, "--merge"]])
        if (us !== undefined && isFaster(us)) facts.push(`${flag} ${fusion.tensor} is predicted to be faster: ${ratio(us)}.`);
    for (const other of choices.without.filter((choice) => isFaster(choice.us)))
      facts.push(`--disable-pass ${other.pass} is predicted to be faster: ${ratio(other.us)}.`);
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

// ---- The chosen line ------------------------------------------------------------------------------

function showLine() {
  const parts = [];
  for (const place of [...marked].sort((a, b) => a - b)) {
    const { file, line } = view.places[place];
    const text = view.files[file].text.split("\n")[line - 1] || "";
    const card = make("div", { class: "card" },
      make("h2", {}, `${view.files[file].name}:${line}`), make("pre", {}, text.trim()));
    if (timeOf && timeOf[place] > 0)
      card.append(make("h3", {}, `${micros(timeOf[place])}, ${percent(timeOf[place], view.total.predicted_us)} of the predicted time`));
    if (instructionTotals && instructionTotals[place]) {
      card.append(make("h3", {}, `${plain(instructionTotals[place])} instructions of the ` +
        `${titles[view.instructions.stage]} text, ${percent(instructionTotals[place], allInstructions)} of all`));
      const list = view.instructions.kinds
        .map((kind, k) => [kind, view.instructions.by_place[place][k]])
        .filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1])
        .map(([kind, count]) => `${kind} ${plain(count)}`).join(" \u00b7 ");
      card.append(make("div", {}, list));
    }
    const stalls = stallText(place);
    if (stalls) card.append(make("h3", {}, "Samples of Nsight Compute, by the reason for which warps waited"),
      make("div", {}, stalls));
    const remarks = remarksOf(place);
    if (remarks.length) {
      card.append(make("h3", {}, "Derived and declined"));
      card.append(remarkList(remarks));
    }
    const others = otherPlans(place);
    if (others) card.append(others);
    card.append(changeList(place));
    parts.push(card);
  }
  byId("line").replaceChildren(...parts);
}

/** The kernel's predicted time with and without what a pass derived, or with a tensor stored and inlined. */
function withAndWithout(remark) {
  const fusion = view.choices && remark.tensor && view.choices.fusions.find((choice) => choice.tensor === remark.tensor);
  if (fusion) {
    const time = (value) => value === null ? "not possible" : micros(value);
    if (fusion.apart_us !== undefined) return ` apart: ${time(fusion.apart_us)}; merged: ${time(fusion.merged_us)}`;
    return ` stored: ${time(fusion.stored_us)}; computed where it is read: ${time(fusion.inlined_us)}`;
  }
  const other = view.choices && remark.verdict === "derived" &&
    view.choices.without.find((choice) => choice.pass === remark.pass);
  if (!other) return "";
  const own = view.choices.own_us;
  if (other.us === null) return " no code without this pass";
  return ` predicted ${micros(own)}, ` +
    (Math.abs(other.us - own) < 0.001 * own ? "the same without this pass" : `${micros(other.us)} without this pass`);
}

function remarkList(remarks) {
  return make("ul", {}, ...remarks.map((remark) => make("li", {},
    make("span", { class: remark.verdict === "declined" ? "bad" : "good" }, remark.verdict), ": ",
    remark.text, " ", make("span", { class: "pass" }, `[${remark.pass}]${withAndWithout(remark)}`))));
}

/** Schedules that the planner did not choose, with both predicted times, at the lines that have a plan. */
function otherPlans(place) {
  const { file, line } = view.places[place];
  const hasPlan = file === 0 && view.launches.some((launch) => launch.line === line);
  if (!hasPlan || !view.choices || !view.choices.schedules.length) return null;
  const own = view.choices.own_us;
  return make("details", {}, make("summary", {}, "Schedules that the planner declined"),
    make("div", { class: "pass" }, `The kernel as it is: ${micros(own)}, predicted without ` +
      "registers of compiled code. The planner also follows rules that were measured: tkc tune tells which schedule is faster."),
    table(["schedule entries", "predicted", "of the kernel as it is"], view.choices.schedules.map((other) =>
      [other.entries, micros(other.us), `${(100 * other.us / own).toFixed(0)} %`])));
}

/** The reasons for which warps waited at a line's instructions, the most frequent first. */
function stallText(place) {
  const stalls = view.profile && view.profile.stalls;
  if (!stalls) return "";
  const counts = stalls.by_place[place];
  return stalls.reasons.map((reason, i) => [reason, counts[i]]).filter(([, count]) => count > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([reason, count]) => `${reason.replace(/_/g, " ")} ${percent(count, stalls.samples)}`).join(" \u00b7 ");
}

/** What a launch took when it was measured, beside what was predicted. */
function measuredText(launch) {
  const measured = measuredOf(launch);
  if (!measured) return "";
  const { cost } = launch, seconds = measured.us * 1e-6;
  const parts = [`${micros(measured.us)} on ${view.profile.device}`];
  if (cost) {
    const rate = (cost.read_bytes + cost.written_bytes) / seconds, copy = view.profile.copy_bytes_per_s;
    parts[0] += `, ${(measured.us / cost.predicted_us).toFixed(2)} of the predicted time`;
    parts.push(`${withPrefix(rate, "B/s")} of device memory` +
      (copy > 0 ? `, ${percent(rate, copy)} of a large copy's ${withPrefix(copy, "B/s")}` : ""));
    if (cost.operations > 0) parts.push(withPrefix(cost.operations / seconds, "op/s") +
      ` (predicted ${withPrefix(cost.operations / (cost.predicted_us * 1e-6), "op/s")})`);
  }
  return parts.join("; ");
}

/** The measured time of a launch: those of one symbol are in order. */
function measuredOf(launch) {
  if (!view.profile) return null;
  const number = view.launches.filter((other) => other.symbol === launch.symbol).indexOf(launch);
  return view.profile.launches.filter((time) => time.symbol === launch.symbol)[number] || null;
}
