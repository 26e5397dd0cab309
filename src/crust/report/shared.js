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

function unpack(text, Kind) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
}

function opened(packed) {
  const data = { ...packed };
  data.index = unpack(packed.index, Uint32Array);
  for (const name of ["given", "suggested", "error_score", "probability", "chosen"]) {
    data[name] = packed[name] === null ? null : unpack(packed[name], Uint16Array);
  }
  data.held = packed.held === null ? null : unpack(packed.held, Uint8Array);
  return data;
}

function share(data, values, position, digits = 2) {
  const value = values[position];
  return value > data.scale ? "–" : (value / data.scale).toFixed(digits);
}

// What is shown of a error_score: its opposite, the label quality of the table.
function quality(data, position, digits = 3) {
  const value = data.error_score[position];
  return value > data.scale ? "–" : (1 - value / data.scale).toFixed(digits);
}

function nameOf(data, position) {
  const id = data.ids === null ? "" : data.ids[position];
  return id || `example ${data.index[position]}`;
}

// Which positions fit the filters, in the order that is asked for. The data lies worst first.
function chosen(data, wanted) {
  const words = wanted.search.trim().toLowerCase();
  const found = [];
  for (let i = 0; i < data.count; i += 1) {
    if (wanted.given >= 0 && data.given[i] !== wanted.given) continue;
    if (wanted.suggested >= 0 && data.suggested[i] !== wanted.suggested) continue;
    if (wanted.differs && data.given[i] === data.suggested[i]) continue;
    if (wanted.least > 0 && !(data.error_score[i] >= wanted.least && data.error_score[i] <= data.scale)) continue;
    if (words && !matches(data, i, words)) continue;
    found.push(i);
  }
  const by = ORDERS[wanted.sort];
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

function labelsLine(data, position) {
  const differs = data.given[position] !== data.suggested[position];
  return make(
    "p", { class: "labels" },
    make("span", {}, "given "), make("bdi", {}, data.classes[data.given[position]]),
    make("span", {}, " predicted "),
    make("bdi", { class: differs ? "suggested" : null }, data.classes[data.suggested[position]]),
  );
}

function numbersLine(data, position) {
  const text = `label quality ${quality(data, position)} · probability ${share(data, data.probability, position)}`;
  return make("p", { class: "numbers" }, text);
}

// The cells of a row, short on a card and whole in the dialog; text alone needs no name above it.
function rowBlock(columns, cells, most) {
  const block = make("dl", { class: "row" });
  const shown = most ? cells.slice(0, 6) : cells;
  shown.forEach((cell, i) => {
    const text = most && cell.length > most ? `${cell.slice(0, most)}…` : cell;
    if (columns.length > 1) block.append(make("dt", {}, columns[i]));
    block.append(make("dd", { dir: "auto" }, text === "" ? "–" : text));
  });
  if (shown.length < cells.length) block.append(make("dt", { class: "more" }, `and ${cells.length - shown.length} more`));
  return block;
}

function typing(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea") !== null;
}
