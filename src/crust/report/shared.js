"use strict";
// What the report and the review page share. Text from the data only ever becomes a text node.

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function find(id) {
  return document.getElementById(id);
}

function count(number) {
  return number.toLocaleString("en");
}

function unpack(text, Kind) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
}

function opened(packed) {
  const data = { ...packed };
  data.listed = packed.count; // those that lie worst first
  data.index = unpack(packed.index, Uint32Array);
  for (const name of ["given", "suggested", "error_score", "probability", "chosen", "xy"]) {
    data[name] = packed[name] === null ? null : unpack(packed[name], Uint16Array);
  }
  data.issue = unpack(packed.issue, Uint8Array);
  data.held = packed.held === null ? null : unpack(packed.held, Uint8Array);
  data.position = new Map();
  data.index.forEach((index, position) => data.position.set(index, position));
  data.kind = packed.columns.length > 1 ? "table" : packed.columns.length === 1 ? "text" : "images";
  return data;
}

// Examples that come later: those that are not there yet, at the end of all columns.
function extend(data, packed) {
  const more = opened(packed);
  const fresh = [...more.index.keys()].filter((i) => !data.position.has(more.index[i]));
  const joined = (old, values) => {
    if (old === null) return null;
    const both = new old.constructor(old.length + fresh.length);
    both.set(old);
    both.set(fresh.map((i) => values[i]), old.length);
    return both;
  };
  for (const name of ["index", "given", "suggested", "error_score", "probability", "chosen", "issue", "held"]) data[name] = joined(data[name], more[name]);
  if (data.ids !== null) data.ids.push(...fresh.map((i) => more.ids[i]));
  fresh.forEach((i, k) => data.position.set(more.index[i], data.count + k));
  data.count += fresh.length;
  for (const name of ["evidence", "same", "rows", "pictures", "marks"]) Object.assign(data[name], more[name]);
  return fresh.length;
}

function share(data, values, position, digits = 2) {
  const value = values[position];
  return value > data.scale ? "–" : (value / data.scale).toFixed(digits);
}

// What is shown of an error score: its opposite, the label quality of the table.
function quality(data, position, digits = 3) {
  const value = data.error_score[position];
  return value > data.scale ? "–" : (1 - value / data.scale).toFixed(digits);
}

function nameOf(data, position) {
  const id = data.ids === null ? "" : data.ids[position];
  return id || `example ${data.index[position]}`;
}

// File names are never cut: they may break after a slash, and where a part is long, at its dots, dashes and underscores.
function nameLine(data, position, tag = "p") {
  const parts = nameOf(data, position).split(/(?<=\/)/u).flatMap((part) => (part.length > 18 ? part.split(/(?<=[_-])|(?=\.)/u) : [part]));
  return make(tag, { class: "name", dir: "auto" }, ...parts.flatMap((part, i) => (i ? [make("wbr"), part] : [part])));
}

// Which positions fit the filters, in the order that is asked for. The data lies worst first.
function chosen(data, wanted) {
  const words = wanted.search.trim().toLowerCase();
  const found = [];
  for (let i = 0; i < data.count; i += 1) {
    if (wanted.given >= 0 && data.given[i] !== wanted.given) continue;
    if (wanted.suggested >= 0 && data.suggested[i] !== wanted.suggested) continue;
    if (wanted.what === "issues" && !data.issue[i]) continue;
    if (wanted.what === "differs" && data.given[i] === data.suggested[i]) continue;
    if (wanted.picked && !wanted.picked.has(i)) continue;
    if (words && !matches(data, i, words)) continue;
    found.push(i);
  }
  const by = ORDERS[wanted.sort];
  if (!by && data.listed < data.count) found.sort((a, b) => data.error_score[b] - data.error_score[a] || a - b);
  return by ? found.sort((a, b) => by(data, a, b) || a - b) : found;
}

const ORDERS = {
  sure: (data, a, b) => b - a,
  probability: (data, a, b) => data.probability[b] - data.probability[a],
  index: (data, a, b) => data.index[a] - data.index[b],
  given: (data, a, b) => data.given[a] - data.given[b],
  suggested: (data, a, b) => data.suggested[a] - data.suggested[b],
};

function matches(data, position, words) {
  const index = String(data.index[position]);
  if (index === words || nameOf(data, position).toLowerCase().includes(words)) return true;
  const row = data.rows[index];
  return row !== undefined && row.some((cell) => cell.toLowerCase().includes(words));
}

function fillClasses(select, data, all) {
  select.append(make("option", { value: -1 }, all));
  data.classes.forEach((name, i) => select.append(make("option", { value: i }, name)));
}

// What `chosen` and the map share: the filters of a form, by the names of their fields.
function listenToFilters(wanted, apply) {
  const given = (name, value) => { wanted[name] = value; apply(); };
  for (const name of ["given", "suggested"]) find(name).addEventListener("change", (event) => given(name, Number(event.target.value)));
  for (const name of ["what", "sort"]) find(name).addEventListener("change", (event) => given(name, event.target.value));
  let waiting = 0;
  find("search").addEventListener("input", (event) => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => given("search", event.target.value), 120);
  });
  find("filters").addEventListener("submit", (event) => event.preventDefault());
}

// What is selected on the map is listed whatever it is; and afterwards what was listed before.
function pickOnMap(wanted, picked) {
  if (wanted.picked === null) wanted.before = wanted.what;
  wanted.picked = picked;
  if (picked) Object.assign(wanted, { what: "all", given: -1, suggested: -1, search: "" });
  else if (wanted.what === "all") wanted.what = wanted.before;
}

function sizeSlider(list) {
  const slider = find("size");
  slider.closest("label").hidden = list.dataset.kind !== "images";
  const set = () => list.style.setProperty("--size", `${slider.value}px`);
  slider.addEventListener("input", set);
}

function labelsLine(data, position) {
  const differs = data.given[position] !== data.suggested[position];
  return make(
    "p", { class: "labels" },
    make("span", {}, "given "), make("bdi", {}, data.classes[data.given[position]]),
    make("span", {}, " predicted "),
    make("bdi", { class: differs ? "suggested" : null }, data.classes[data.suggested[position]]),
  );
}

function numbersLine(data, position, all = true) {
  const known = all && data.probability[position] <= data.scale;
  const text = `label quality ${quality(data, position)}${known ? ` · probability ${share(data, data.probability, position)}` : ""}`;
  return make("p", { class: "numbers" }, text);
}

// Text of any length: some lines of it, and a button that shows the rest.
function longText(text, most) {
  if (text === "") return make("span", { class: "soft" }, "–");
  if (!most || text.length <= most) return make("span", { class: "text", dir: "auto" }, text);
  const shown = make("span", { class: "text", dir: "auto" }, `${text.slice(0, most)}…`);
  const button = make("button", { type: "button", class: "more", "aria-expanded": "false" }, "more");
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "less" : "more";
    shown.textContent = open ? text : `${text.slice(0, most)}…`;
  });
  return make("span", {}, shown, " ", button);
}

const ODD = "differs most from the most similar examples";

function cellOf(data, index, column, most) {
  const marked = (data.marks[index] || []).includes(column);
  return marked ? make("mark", { title: ODD }, longText(data.rows[index][column], most)) : longText(data.rows[index][column], most);
}

// The list that examples are put into: of rows of a table it becomes one, with the same name.
function exampleList(data, list, first) {
  list.dataset.kind = data.kind;
  list.classList.toggle("texts", data.kind === "text");
  find("about-numbers").textContent = aboutNumbers(data);
  if (data.kind !== "table") return list;
  const some = Object.values(data.rows).slice(0, 500);
  data.numeric = data.columns.map((_, column) => some.every((row) => row[column] === "" || Number.isFinite(Number(row[column]))));
  const cell = (text, kind) => make("th", { scope: "col", class: kind }, text);
  const head = make("tr", {}, ...first.map((text) => cell(text, "fixed")), ...data.columns.map((name, i) => cell(make("bdi", {}, name), data.numeric[i] ? "number" : null)));
  const table = make("table", { id: list.id, class: "examples", "data-kind": "table" }, make("thead", {}, head), make("tbody", {}));
  list.replaceWith(make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "examples" }, table));
  return table;
}

function rowCells(data, index, most = 60) {
  const row = data.rows[index];
  if (!row) return [make("td", { colspan: data.columns.length, class: "soft" }, "not in this file")];
  return row.map((_, column) => make("td", { dir: "auto", class: data.numeric[column] ? "number" : null }, cellOf(data, index, column, most)));
}

// What the numbers and marks of the list mean.
function aboutNumbers(data) {
  const marks = Object.keys(data.marks).length ? " Marked cells differ most from those of the most similar examples." : "";
  return `Label quality: 0 is very likely wrong, 1 very likely right.${marks}`;
}

// The name of an example where its column says what it is.
function rowName(data, position) {
  return data.ids === null ? make("span", { class: "name" }, data.index[position]) : nameLine(data, position, "span");
}

// An example beside those that it is compared with: columns go down, examples across.
function besideEachOther(data, index, others, rows) {
  const all = [index, ...others.map((one) => one.index)].filter((one) => rows[one]);
  if (!rows[index]) return null;
  const label = (one, i) => (i === 0 ? "this one" : `example ${one}`);
  const marked = new Set(data.marks[index] || []);
  const body = data.columns.map((name, column) => make(
    "tr", {}, make("th", { scope: "row" }, make("bdi", {}, name)),
    ...all.map((one, i) => {
      const text = longText(rows[one][column], 400);
      return make("td", { dir: "auto" }, i === 0 && marked.has(column) ? make("mark", { title: ODD }, text) : text);
    }),
  ));
  const heads = all.map((one, i) => make("th", { scope: "col" }, label(one, i)));
  const given = all.map((one) => make("td", {}, make("bdi", { class: "label" }, labelOf(data, one, others))));
  return make(
    "div", { class: "wide", tabindex: "0", role: "region", "aria-label": "column by column" },
    make(
      "table", { class: "beside-each-other" }, make("thead", {}, make("tr", {}, make("td", {}), ...heads)),
      make("tbody", {}, make("tr", { class: "given" }, make("th", { scope: "row" }, "given label"), ...given), ...body),
    ),
  );
}

function labelOf(data, index, others) {
  const known = others.find((one) => one.index === index);
  return data.classes[known ? known.label : data.given[data.position.get(index)]];
}

// One sentence that says what the evidence is, and what it speaks for.
function evidenceLine(data, position, near) {
  const wanted = data.suggested[position];
  const agree = near.filter((one) => one.label === wanted).length;
  const many = near.length === 1 ? "The most similar example" : `The ${["", "", "two", "three"][near.length] || near.length} most similar examples`;
  return make(
    "p", { class: "hint" }, `${many} whose labels the model trusts: ${agree} of ${near.length} labelled `,
    make("bdi", {}, data.classes[wanted]), ", as predicted.",
  );
}

function sameLine(data, position, same) {
  const others = same.filter((one) => one.label !== data.given[position]).length;
  const many = same.length === 1 ? "Another example is" : `${same.length} other examples are`;
  return make("p", { class: "hint" }, `${many} the very same; ${others ? `${others} with another label.` : "with the same label."}`);
}

// Cards of examples that stand beside another one: images or texts, with their labels.
function besideCards(data, list, picture) {
  return make("ul", { class: "gallery near", "data-kind": data.kind }, ...list.map((one) => make(
    "li", {}, picture(one.index, `example ${one.index}`),
    data.kind === "text" && data.rows[one.index] ? make("p", {}, longText(data.rows[one.index][0], 240)) : null,
    make("p", { class: "labels" }, make("bdi", {}, data.classes[one.label])),
    make("p", { class: "numbers" }, `example ${one.index}`),
  )));
}

function typing(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea") !== null;
}
