// The card of the chosen line, and the facts of the passes. Stands behind cards.js in the same script.

// ---- The chosen line ------------------------------------------------------------------------------

function showLine() {
  const parts = [];
  for (const place of [...marked].sort((a, b) => a - b)) {
    const { file, line } = view.places[place];
    const text = view.files[file].text.split("\n")[line - 1] || "";
    const card = make("div", { class: "card" },
      make("h2", { title: view.files[file].name }, `${shortName(file)}:${line}`), make("pre", {}, text.trim()));
    if (timeOf && timeOf[place] > 0)
      card.append(make("h3", {}, `${micros(timeOf[place])}, ${percent(timeOf[place], view.total.predicted_us)} of the predicted time`),
                  launchTimes(place) || "");
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
      card.append(remarkList(remarks, place));
    }
    const others = otherPlans(place);
    if (others) card.append(others);
    card.append(changeList(place));
    parts.push(card);
  }
  byId("line").replaceChildren(...parts);
}

/** A line's time in each of its launches, if there are several. */
function launchTimes(place) {
  const launches = view.launches.filter((launch) => timeIn(launch, place) > 0);
  return launches.length > 1 ? table(["launch", "predicted", "of the line"], launches.map((launch) =>
    [launch.symbol, micros(timeIn(launch, place)), percent(timeIn(launch, place), timeOf[place])])) : null;
}

/** A predicted time against the plan's, both without the registers of compiled code. */
function againstPlan(us) {
  const ratio = us / view.choices.own_us;
  if (Math.abs(ratio - 1) < 0.001) return "the same time";
  return ratio < 2 ? `${(100 * Math.abs(ratio - 1)).toPrecision(2)} % ${ratio < 1 ? "less" : "more"} time` : `${ratio.toFixed(1)} times the time`;
}

/** The kernel's predicted time with and without what a pass derived, or with a tensor stored and inlined. */
function withAndWithout(remark) {
  const fusion = view.choices && remark.tensor && view.choices.fusions.find((choice) => choice.tensor === remark.tensor);
  if (fusion) {
    const time = (value) => value === null ? "not possible" : value === view.choices.own_us ? "as planned" : againstPlan(value);
    if (fusion.apart_us !== undefined) return ` apart: ${time(fusion.apart_us)}; merged: ${time(fusion.merged_us)}`;
    return ` stored: ${time(fusion.stored_us)}; computed where it is read: ${time(fusion.inlined_us)}`;
  }
  const other = view.choices && remark.verdict === "derived" &&
    view.choices.without.find((choice) => choice.pass === remark.pass);
  if (!other) return "";
  if (other.us === null) return " no code without this pass";
  return ` without this pass: ${againstPlan(other.us)}`;
}

/** Facts that differ in one name, or in the line, become one fact, which has all of them; declined ones come first. */
function grouped(remarks) {
  const groups = [];
  for (const remark of [...remarks].sort((a, b) => (a.verdict === "derived") - (b.verdict === "derived"))) {
    const parts = remark.text.split(/'([^']*)'/);
    const suffix = withAndWithout(remark);
    const joins = (group) => {
      if (group.verdict !== remark.verdict || group.pass !== remark.pass || group.suffix !== suffix ||
          group.parts.length !== parts.length) return -1;
      const other = parts.map((_, i) => i).filter((i) => group.parts[i].join() !== parts[i]);
      if (other.some((i) => i % 2 === 0)) return -1;
      return other.length === 0 ? 0 : other.length === 1 && (group.at === undefined || group.at === other[0]) ? other[0] : -1;
    };
    const group = groups.find((candidate) => joins(candidate) >= 0);
    if (!group) {
      groups.push({ verdict: remark.verdict, pass: remark.pass, suffix, parts: parts.map((part) => [part]), remarks: [remark] });
      continue;
    }
    const at = joins(group);
    group.remarks.push(remark);
    if (at === 0) continue;
    group.at = at;
    if (!group.parts[at].includes(parts[at])) group.parts[at].push(parts[at]);
  }
  return groups;
}

/** The lines of a group of facts, each with a button that marks it, but for the chosen line alone. */
function linesOfFacts(group, chosen) {
  const lines = [...new Set(group.remarks.filter((remark) => remark.line > 0).map((remark) => remark.line))].sort((a, b) => a - b);
  const own = chosen === null ? -1 : view.places[chosen].line;
  if (!lines.length || (lines.length === 1 && lines[0] === own)) return [];
  return [lines.length > 1 ? " at the lines " : " at line ", ...lines.flatMap((line, i) => {
    const place = placeAt.get(`0:${line}`);
    const text = place === undefined ? String(line)
      : make("button", { type: "button", class: "at-line", title: "Mark the line", onclick: () => mark(new Set([place]), null) }, String(line));
    return i ? [", ", text] : [text];
  })];
}

/** Facts with the lines that they stand at; `chosen` is the place whose card they are in, or null. */
function remarkList(remarks, chosen) {
  return make("ul", {}, ...grouped(remarks).map((group) => make("li", {},
    make("span", { class: group.verdict === "declined" ? "bad" : "good" }, group.verdict), ": ",
    group.parts.map((part, i) => i % 2 ? part.map((name) => `'${name}'`).join(", ") : part[0]).join(""),
    ...linesOfFacts(group, chosen), " ", make("span", { class: "pass" }, `[${group.pass}]${group.suffix}`))));
}

/** How many facts there are, and in how many rows they stand. */
function factsSummary() {
  const rows = grouped(view.remarks).length, all = view.remarks.length;
  return `${all} fact${all === 1 ? "" : "s"} that the passes derived or declined` +
    (rows < all ? `, those that differ in a name or a line as one: ${rows}` : "");
}

/** Schedules that the planner did not choose, with both predicted times, at the lines that have a plan. */
function otherPlans(place) {
  const { file, line } = view.places[place];
  const hasPlan = file === 0 && view.launches.some((launch) => launch.line === line);
  if (!hasPlan || !view.choices || !view.choices.schedules.length) return null;
  const own = view.choices.own_us;
  const rules = new Map(view.choices.schedules.map((other) => [other.entries.split(" ")[0], other.rule]));
  return make("details", {}, make("summary", {}, "Schedules that the planner declined"),
    table(["schedule entries", "predicted, against the plan", "uneven work"], view.choices.schedules.map((other) =>
      [other.entries, againstPlan(other.us), Number(other.uneven.toPrecision(3)).toString()])),
    make("h3", {}, "The rules by which the planner chose other values"),
    make("dl", {}, ...[...rules].flatMap(([key, rule]) => [make("dt", {}, key), make("dd", {}, rule)])),
    make("div", { class: "pass" }, `Predicted before compilation, when registers are not known: ${micros(own)} for the plan, whose work is ` +
      `uneven by ${Number(view.choices.own_uneven.toPrecision(3))}. With the registers of its code the plan takes ` +
      `${micros(view.total.predicted_us)}. The planner follows its rules, not these times, which nobody has measured: tkc tune tells ` +
      "which schedule is faster."));
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
