"use strict";
(() => {
  const data = opened(JSON.parse(find("data").textContent));
  const SIZE = { images: 60, text: 30, table: 30 }[data.kind];
  const list = exampleList(data, find("gallery"), ["example", "given → predicted", "quality"]);
  const dialog = find("detail");
  const start = { what: data.issue.some((one) => one) ? "issues" : "all", given: -1, suggested: -1, search: "", sort: "error_score" };
  const wanted = { ...start, picked: null };
  let found = [];
  let page = 0;
  let open = -1; // where in `found` the dialog is
  let map = null;

  function pages() {
    return Math.max(1, Math.ceil(found.length / SIZE));
  }

  function apply() {
    found = chosen(data, wanted);
    page = 0;
    draw();
  }

  function draw() {
    const part = found.slice(page * SIZE, (page + 1) * SIZE);
    const first = page * SIZE;
    const body = list.querySelector("tbody") || list;
    body.replaceChildren(...part.map((position, i) => (data.kind === "table" ? line(position, first + i) : card(position, first + i))));
    const most = data.count < data.total ? ` (of ${count(data.total)}, the worst)` : "";
    find("count").textContent = found.length
      ? `${count(found.length)} of ${count(data.count)} examples${most}; page ${count(page + 1)} of ${count(pages())}`
      : "No example fits these filters.";
    find("page").value = page + 1;
    find("page").max = pages();
    for (const [id, off] of [["first", page === 0], ["back", page === 0], ["next", page >= pages() - 1], ["last", page >= pages() - 1]]) {
      find(id).disabled = off;
    }
  }

  function turn(to) {
    const next = Math.min(Math.max(0, to), pages() - 1);
    if (next === page || Number.isNaN(next)) return;
    page = next;
    draw();
  }

  function pictureOf(index, alt) {
    const source = data.pictures[index];
    if (source) return make("img", { src: source, alt });
    if (source === "") return make("p", { class: "missing" }, "this image is gone");
    if (source === null) return make("p", { class: "missing" }, "this image cannot be read");
    return null;
  }

  const altOf = (position) => `${nameOf(data, position)}, labelled ${data.classes[data.given[position]]}`;

  function card(position, place) {
    const index = data.index[position];
    const row = data.rows[index];
    const button = make(
      "button", { type: "button", class: "card", "data-place": place },
      pictureOf(index, altOf(position)), labelsLine(data, position), numbersLine(data, position, data.kind === "text"), nameLine(data, position),
    );
    return make("li", {}, button, data.kind === "text" && row ? make("div", { class: "words" }, longText(row[0], 320)) : null);
  }

  // A row of a table of data stays one: the cells that differ most from its neighbours are marked.
  function line(position, place) {
    const index = data.index[position];
    return make(
      "tr", { "data-place": place, class: "item" },
      make("th", { scope: "row", class: "fixed" }, make("button", { type: "button", class: "card", "data-place": place, "aria-label": nameOf(data, position) }, rowName(data, position))),
      make("td", { class: "fixed" }, labelsLine(data, position)), make("td", { class: "fixed number" }, quality(data, position)),
      ...rowCells(data, index),
    );
  }

  function show(place) {
    if (place < 0 || place >= found.length) return;
    open = place;
    const position = found[place];
    const index = data.index[position];
    const facts = [
      ["given", data.classes[data.given[position]]],
      ["predicted", data.classes[data.suggested[position]]],
      ["probability of the prediction", share(data, data.probability, position)],
      ["label quality", quality(data, position)],
      ["index", String(index)],
    ];
    if (data.chosen !== null) facts.push(["share of the selections it was in", share(data, data.chosen, position)]);
    if (data.held !== null && data.held[position]) facts.push(["held out", "yes: it was never trained on"]);
    const names = make("dl", { class: "facts" });
    for (const [name, value] of facts.filter(([, one]) => one !== "–")) names.append(make("dt", {}, name), make("dd", { dir: "auto" }, value));
    const near = data.evidence[index] || [];
    const same = data.same[index] || [];
    const row = data.rows[index];
    find("detail-body").replaceChildren(
      nameLine(data, position, "h3"), pictureOf(index, altOf(position)) || "",
      data.kind === "text" && row ? make("p", { class: "row text", dir: "auto", tabindex: "0" }, row[0]) : "", names,
      near.length ? make("h4", {}, "Evidence") : "", near.length ? evidenceLine(data, position, near) : "",
      data.kind === "table" ? besideEachOther(data, index, near, data.rows) || "" : near.length ? besideCards(data, near, pictureOf) : "",
      same.length ? make("h4", {}, "Duplicates") : "", same.length ? sameLine(data, position, same) : "",
      same.length ? besideCards(data, same, pictureOf) : "",
    );
    find("detail-place").textContent = `${count(place + 1)} of ${count(found.length)}`;
    if (!dialog.open) dialog.showModal();
  }

  function reset(more) {
    find("filters").reset();
    Object.assign(wanted, start, { picked: null }, more);
    for (const name of ["what", "given", "suggested", "sort"]) find(name).value = wanted[name];
    if (map) map.forget();
    apply();
  }

  for (const name of ["given", "suggested"]) fillClasses(find(name), data, "any");
  const issues = data.issue.reduce((sum, one) => sum + one, 0);
  find("what").append(
    make("option", { value: "issues" }, `label issues (${count(issues)})`),
    make("option", { value: "differs" }, "predicted otherwise"), make("option", { value: "all" }, `all (${count(data.count)})`),
  );
  find("what").value = wanted.what;
  sizeSlider(list);
  listenToFilters(wanted, apply);
  find("clear").addEventListener("click", () => reset());
  find("first").addEventListener("click", () => turn(0));
  find("back").addEventListener("click", () => turn(page - 1));
  find("next").addEventListener("click", () => turn(page + 1));
  find("last").addEventListener("click", () => turn(pages() - 1));
  find("page").addEventListener("change", (event) => turn(Number(event.target.value) - 1));
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[data-place]");
    if (item && !event.target.closest(".more")) show(Number(item.dataset.place));
  });
  find("detail-back").addEventListener("click", () => show(open - 1));
  find("detail-next").addEventListener("click", () => show(open + 1));
  find("detail-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    turn(Math.floor(open / SIZE));
    const button = list.querySelector(`button[data-place="${open}"]`);
    if (button) button.focus();
  });
  // A cell of the class matrix leads to its examples.
  document.addEventListener("click", (event) => {
    const cell = event.target.closest("button[data-given]");
    if (!cell) return;
    reset({ what: "all", given: Number(cell.dataset.given), suggested: Number(cell.dataset.suggested) });
    find("suspects").scrollIntoView();
    find("given").focus({ preventScroll: true });
  });
  document.addEventListener("keydown", (event) => {
    if (typing(event)) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step && !event.target.closest(".wide")) {
      if (dialog.open) show(open + step);
      else turn(page + step);
      event.preventDefault();
    } else if (!dialog.open && event.key === "/") {
      find("search").focus();
      event.preventDefault();
    } else if (!dialog.open && (event.key === "Home" || event.key === "End") && event.target.closest("#gallery")) {
      turn(event.key === "Home" ? 0 : pages() - 1);
      event.preventDefault();
    }
  });
  apply();
  const place = find("map");
  if (place) {
    const root = mapPanel(place.dataset.source);
    place.append(root);
    const shown = (position) => make("div", {}, pictureOf(data.index[position], "") || "", nameLine(data, position), labelsLine(data, position));
    map = startMap(data, root, {
      shown,
      list: find("suspects"),
      select: (picked) => {
        pickOnMap(wanted, picked);
        for (const name of ["what", "given", "suggested", "search"]) find(name).value = wanted[name];
        apply();
      },
    });
  }
  document.documentElement.dataset.ready = "yes";
})();
