// What each pass changed in the chosen line. Stands behind cards.js in the same script.

let passChanges; // read once somebody asks for them
function changesOf(place) {
  passChanges ??= JSON.parse(byId("changes").textContent);
  return passChanges.passes.flatMap(({ pass, lines }) => lines.filter((line) => line.place === place)
    .map((line) => ({ pass, removed: line.removed, added: line.added })));
}

function changeText(change) {
  const row = (sign, name) => (number) =>
    make("div", { class: `change ${name}` }, `${sign} ${passChanges.texts[number]}`);
  return make("div", { class: "code changes" }, ...change.removed.map(row("\u2212", "removed")),
    ...change.added.map(row("+", "added")));
}

/** A list of the passes, and what each changed, made when it is opened. */
function changeList(place) {
  const list = make("details", { class: "passes" }, make("summary", {}, "What each pass changed"));
  list.addEventListener("toggle", () => {
    if (!list.open || list.children.length > 1) return;
    const changes = changesOf(place);
    if (!changes.length) list.append(make("div", { class: "pass" }, "No pass changed an operation of this line."));
    for (const change of changes) {
      const one = make("details", {}, make("summary", {}, `${change.pass}  `,
        make("span", { class: "pass" }, `${change.removed.length} removed, ${change.added.length} added`)));
      one.addEventListener("toggle", () => {
        if (one.open && one.children.length === 1) one.append(changeText(change));
      });
      list.append(one);
    }
  });
  return list;
}
