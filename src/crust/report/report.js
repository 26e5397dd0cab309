"use strict";
(() => {
  const data = opened(JSON.parse(find("data").textContent));
  const SIZE = 48;
  const gallery = find("gallery");
  const dialog = find("detail");
  const wanted = { given: -1, suggested: -1, differs: false, least: 0, search: "", sort: "error_score" };
  let found = [];
  let page = 0;
  let open = -1; // where in `found` the dialog is

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
    gallery.replaceChildren(...part.map((position, i) => card(position, page * SIZE + i)));
    const most = data.count < data.total ? ` (of ${data.total.toLocaleString("en")}, the worst)` : "";
    find("count").textContent = found.length
      ? `${found.length.toLocaleString("en")} of ${data.count.toLocaleString("en")} examples${most}; `
        + `page ${(page + 1).toLocaleString("en")} of ${pages().toLocaleString("en")}`
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

  function picture(position) {
    const index = data.index[position];
    const source = data.pictures[index];
    if (source) return make("img", { src: source, alt: `${nameOf(data, position)}, labelled ${data.classes[data.given[position]]}` });
    if (source === "") return make("p", { class: "missing" }, "this image is gone");
    if (source === null) return make("p", { class: "missing" }, "this image cannot be read");
    return null;
  }

  function card(position, place) {
    const index = data.index[position];
    const row = data.rows[index];
    const button = make(
      "button", { type: "button", class: "card", "data-place": place },
      picture(position), row ? rowBlock(data.columns, row, 120) : null,
      labelsLine(data, position), numbersLine(data, position),
      make("p", { class: "name", dir: "auto" }, nameOf(data, position)),
    );
    return make("li", {}, button);
  }

  function show(place) {
    if (place < 0 || place >= found.length) return;
    open = place;
    const position = found[place];
    const index = data.index[position];
    const facts = [
      ["given", data.classes[data.given[position]]],
      ["predicted", data.classes[data.suggested[position]]],
      ["probability of the suggestion", share(data, data.probability, position)],
      ["label quality", quality(data, position)],
      ["index", String(index)],
    ];
    if (data.chosen !== null) facts.push(["share of the selections it was chosen in", share(data, data.chosen, position)]);
    if (data.held !== null && data.held[position]) facts.push(["held out", "yes: it was never trained on"]);
    const list = make("dl", { class: "facts" });
    for (const [name, value] of facts) list.append(make("dt", {}, name), make("dd", { dir: "auto" }, value));
    const row = data.rows[index];
    find("detail-body").replaceChildren(
      make("h3", { dir: "auto" }, nameOf(data, position)),
      picture(position) || "", list, row ? rowBlock(data.columns, row, 0) : "", medoids(index) || "",
    );
    find("detail-place").textContent = `${(place + 1).toLocaleString("en")} of ${found.length.toLocaleString("en")}`;
    if (!dialog.open) dialog.showModal();
  }

  // The evidence: what the examples nearest to it, that crust trains on, say.
  function medoids(index) {
    const near = data.evidence[index];
    if (!near || !near.length) return null;
    const list = make("ul", { class: "gallery near" });
    for (const one of near) {
      const source = data.pictures[one.index];
      list.append(make(
        "li", {},
        source ? make("img", { src: source, alt: `example ${one.index}` }) : null,
        data.rows[one.index] ? rowBlock(data.columns, data.rows[one.index], 120) : null,
        make("p", { class: "labels" }, make("bdi", {}, data.classes[one.label])),
        make("p", { class: "numbers" }, `example ${one.index}`),
      ));
    }
    return make("div", {}, make("h4", {}, "Nearest medoids"), list);
  }

  function change(name, value) {
    wanted[name] = value;
    apply();
  }

  for (const name of ["given", "suggested"]) {
    fillClasses(find(name), data, "any");
    find(name).addEventListener("change", (event) => change(name, Number(event.target.value)));
  }
  find("sort").addEventListener("change", (event) => change("sort", event.target.value));
  find("differs").addEventListener("change", (event) => change("differs", event.target.checked));
  const cut = find("cut");
  if (cut) cut.addEventListener("change", () => change("least", cut.checked ? Number(cut.value) : 0));
  let waiting = 0;
  find("search").addEventListener("input", (event) => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => change("search", event.target.value), 120);
  });
  find("filters").addEventListener("submit", (event) => event.preventDefault());
  find("clear").addEventListener("click", () => {
    Object.assign(wanted, { given: -1, suggested: -1, differs: false, least: 0, search: "", sort: "error_score" });
    find("filters").reset();
    apply();
  });
  find("first").addEventListener("click", () => turn(0));
  find("back").addEventListener("click", () => turn(page - 1));
  find("next").addEventListener("click", () => turn(page + 1));
  find("last").addEventListener("click", () => turn(pages() - 1));
  find("page").addEventListener("change", (event) => turn(Number(event.target.value) - 1));
  gallery.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-place]");
    if (button) show(Number(button.dataset.place));
  });
  find("detail-back").addEventListener("click", () => show(open - 1));
  find("detail-next").addEventListener("click", () => show(open + 1));
  find("detail-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    const at = Math.floor(open / SIZE);
    turn(at);
    const button = gallery.querySelector(`button[data-place="${open}"]`);
    if (button) button.focus();
  });
  // A cell of the class matrix leads to its examples.
  document.addEventListener("click", (event) => {
    const cell = event.target.closest("button[data-given]");
    if (!cell) return;
    find("filters").reset();
    Object.assign(wanted, { differs: false, least: 0, search: "", sort: "error_score" });
    wanted.given = Number(cell.dataset.given);
    wanted.suggested = Number(cell.dataset.suggested);
    find("given").value = wanted.given;
    find("suggested").value = wanted.suggested;
    apply();
    find("suspects").scrollIntoView();
    find("given").focus({ preventScroll: true });
  });
  document.addEventListener("keydown", (event) => {
    if (typing(event)) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
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
  gallery.classList.toggle("rows", data.columns.length > 0);
  apply();
  document.documentElement.dataset.ready = "yes";
})();
