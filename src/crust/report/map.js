"use strict";
// The map: every example a point, drawn pixel by pixel, so that a hundred thousand move smoothly without any library.

const PALETTE = ["#175f9e", "#b45309", "#3f7d20", "#9a3fa0", "#b42318", "#00838f", "#7a6a00", "#5b5bd6", "#c2417c", "#1b242d", "#8a5a3c", "#52606d"];
const PALETTE_DARK = ["#6cb6f5", "#f0a255", "#8fce6a", "#d79bf0", "#ff9a8d", "#5cd0da", "#d9c94a", "#a9a9ff", "#f58fbb", "#ffffff", "#d6a883", "#a3adb8"];
const LEGEND = 12; // classes with a colour of their own

// `data` as `opened` gives it; `select` is called with the positions that were selected, or null; `shown` says what
// to tell of the point under the pointer; `list` is where the list of them begins.
function startMap(data, root, { select, shown, list }) {
  const canvas = root.querySelector("canvas");
  const context = canvas.getContext("2d", { alpha: false });
  const tip = root.querySelector(".tip");
  const colour = root.querySelector("[name=colour]");
  const legend = root.querySelector(".legend");
  const said = root.querySelector("[role=status]");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const n = data.count;
  const view = { x: 0, y: 0, scale: 1 }; // the corner of the window in units of the map, and how often it is enlarged
  const colours = new Uint32Array(n);
  let picked = null; // positions
  let lasso = null; // points of the line that is being drawn, in pixels
  let pixels = null;
  let paper = 0;
  let soft = 0;
  const place = { x: 0, y: 0, unit: 1 }; // of the map in the canvas
  let waiting = false;
  let frames = 0;

  const abgr = (hex) => {
    const value = parseInt(hex.slice(1), 16);
    return (0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
  };
  const style = (name) => window.getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function paint() {
    paper = abgr(style("--card"));
    soft = abgr(dark.matches ? "#3a444f" : "#c9d1da");
    const palette = dark.matches ? PALETTE_DARK : PALETTE;
    const by = colour.value;
    if (by === "issue") {
      const [quiet, loud] = [abgr(style("--line")), abgr(style("--alarm"))];
      for (let i = 0; i < n; i += 1) colours[i] = data.issue[i] ? loud : quiet;
    } else if (by === "quality") {
      const low = dark.matches ? [255, 120, 100] : [190, 30, 20];
      const high = dark.matches ? [70, 100, 130] : [175, 200, 222];
      for (let i = 0; i < n; i += 1) {
        const bad = data.error_score[i] > data.scale ? 0 : data.error_score[i] / data.scale;
        const part = low.map((value, k) => Math.round(high[k] + (value - high[k]) * bad));
        colours[i] = (0xff000000 | (part[2] << 16) | (part[1] << 8) | part[0]) >>> 0;
      }
    } else {
      const numbers = by === "given" ? data.given : data.suggested;
      const inks = palette.map(abgr);
      for (let i = 0; i < n; i += 1) colours[i] = inks[numbers[i] < LEGEND ? numbers[i] % inks.length : inks.length - 1];
    }
    const few = data.classes.slice(0, LEGEND);
    const swatch = (ink, text) => {
      const icon = make("span", { class: "swatch", "aria-hidden": "true" });
      icon.style.setProperty("--swatch", ink);
      return make("li", {}, icon, make("bdi", {}, text));
    };
    if (by === "issue") {
      legend.replaceChildren(swatch(style("--alarm"), "label issues"), swatch(style("--line"), "all others"));
    } else if (by === "quality") {
      legend.replaceChildren(swatch(dark.matches ? "#ff7864" : "#be1e14", "low label quality"), swatch(dark.matches ? "#466482" : "#afc8de", "high"));
    } else {
      legend.replaceChildren(
        ...few.map((name, i) => swatch(palette[i % palette.length], name)),
        ...(data.classes.length > LEGEND ? [make("li", {}, `and ${data.classes.length - LEGEND} more, grey`)] : []),
      );
    }
    redraw();
  }

  function fit() {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const box = canvas.getBoundingClientRect();
    const width = Math.max(1, Math.round(box.width * ratio));
    const height = Math.max(1, Math.round(box.height * ratio));
    if (canvas.width !== width || canvas.height !== height || pixels === null) {
      canvas.width = width;
      canvas.height = height;
      pixels = context.createImageData(width, height);
    }
    redraw();
  }

  // Units of the map to pixels of the canvas.
  function frame() {
    const side = Math.min(canvas.width, canvas.height) * 0.94 * view.scale;
    return { side, x: canvas.width / 2 - (view.x + 0.5) * side, y: canvas.height / 2 - (view.y + 0.5) * side };
  }

  function redraw() {
    if (waiting) return;
    waiting = true;
    window.requestAnimationFrame(draw);
  }

  // One point, into the pixels; round enough where it is large.
  function dot(out, width, height, size, i, ink) {
    const left = (data.xy[2 * i] * place.unit + place.x - size / 2) | 0;
    const top = (data.xy[2 * i + 1] * place.unit + place.y - size / 2) | 0;
    if (left < 0 || top < 0 || left + size > width || top + size > height) return;
    let at = top * width + left;
    if (size === 2) {
      out[at] = ink;
      out[at + 1] = ink;
      out[at + width] = ink;
      out[at + width + 1] = ink;
      return;
    }
    for (let row = 0; row < size; row += 1, at += width) {
      const cut = size > 3 && (row === 0 || row === size - 1) ? 1 : 0;
      for (let column = cut; column < size - cut; column += 1) out[at + column] = ink;
    }
  }

  function draw() {
    waiting = false;
    const { side, x, y } = frame();
    Object.assign(place, { x, y, unit: side / 65535 });
    frames += 1;
    root.dataset.frames = frames;
    const { width, height } = canvas;
    const out = new Uint32Array(pixels.data.buffer);
    out.fill(paper);
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const size = Math.max(2, Math.round(ratio * (n > 20000 ? 2 : n > 3000 ? 3 : 5) * Math.min(2.5, Math.sqrt(view.scale))));
    if (picked === null) for (let i = n - 1; i >= 0; i -= 1) dot(out, width, height, size, i, colours[i]); // the worst on top
    else {
      for (let i = n - 1; i >= 0; i -= 1) if (!picked.has(i)) dot(out, width, height, size, i, soft);
      for (const i of picked) dot(out, width, height, size, i, colours[i]);
    }
    context.putImageData(pixels, 0, 0);
    if (lasso && lasso.length > 1) {
      context.beginPath();
      lasso.forEach(([a, b], i) => (i ? context.lineTo(a, b) : context.moveTo(a, b)));
      context.closePath();
      context.lineWidth = 2 * ratio;
      context.strokeStyle = style("--ink");
      context.stroke();
    }
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * (canvas.width / box.width), (event.clientY - box.top) * (canvas.height / box.height)];
  }

  function nearest(point, within) {
    const { side, x, y } = frame();
    const unit = side / 65535;
    let best = -1;
    let least = within * within;
    for (let i = 0; i < n; i += 1) {
      const across = data.xy[2 * i] * unit + x - point[0];
      const down = data.xy[2 * i + 1] * unit + y - point[1];
      const far = across * across + down * down;
      if (far < least) { least = far; best = i; }
    }
    return best;
  }

  function inside(line) {
    const { side, x, y } = frame();
    const unit = side / 65535;
    const found = new Set();
    for (let i = 0; i < n; i += 1) {
      const a = data.xy[2 * i] * unit + x;
      const b = data.xy[2 * i + 1] * unit + y;
      let odd = false;
      for (let k = 0, j = line.length - 1; k < line.length; j = k, k += 1) {
        const [ax, ay] = line[k];
        const [bx, by] = line[j];
        if (ay > b !== by > b && a < ((bx - ax) * (b - ay)) / (by - ay) + ax) odd = !odd;
      }
      if (odd) found.add(i);
    }
    return found;
  }

  function mark(found) {
    picked = found && found.size ? found : null;
    said.textContent = picked === null ? "" : `${count(picked.size)} selected`;
    root.querySelector("[name=none]").disabled = picked === null;
    root.querySelector("[name=list]").disabled = picked === null;
    redraw();
  }

  function choose(found) {
    mark(found);
    select(picked);
  }

  function zoom(times, point) {
    const before = frame();
    const [px, py] = point || [canvas.width / 2, canvas.height / 2];
    const mx = (px - before.x) / before.side;
    const my = (py - before.y) / before.side;
    view.scale = Math.min(400, Math.max(0.5, view.scale * times));
    const after = frame();
    view.x += (after.x + mx * after.side - px) / after.side;
    view.y += (after.y + my * after.side - py) / after.side;
    redraw();
  }

  let drag = null;
  const moves = () => root.querySelector("[name=drag]:checked").value === "move";
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { from: at(event), moved: false, pans: moves() || event.shiftKey, view: { ...view } };
    lasso = drag.pans ? null : [drag.from];
  });
  canvas.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (drag === null) {
      const found = nearest(point, 12);
      tip.hidden = found < 0;
      if (found >= 0) {
        tip.replaceChildren(shown(found));
        const box = canvas.getBoundingClientRect();
        tip.className = `tip${event.clientX - box.left > box.width / 2 ? " left" : ""}`;
        tip.style.setProperty("--x", `${event.clientX - box.left}px`);
        tip.style.setProperty("--y", `${event.clientY - box.top}px`);
      }
      return;
    }
    drag.moved = drag.moved || Math.hypot(point[0] - drag.from[0], point[1] - drag.from[1]) > 4;
    if (drag.pans) {
      const { side } = frame();
      view.x = drag.view.x - (point[0] - drag.from[0]) / side;
      view.y = drag.view.y - (point[1] - drag.from[1]) / side;
    } else lasso.push(point);
    redraw();
  });
  const end = (event) => {
    if (drag === null) return;
    const { moved, pans } = drag;
    drag = null;
    if (!moved) {
      const found = nearest(at(event), 12);
      choose(found < 0 ? null : new Set([found]));
    } else if (!pans) choose(inside(lasso));
    lasso = null;
    redraw();
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !root.contains(document.activeElement)) return; // the page scrolls until the map is used
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), at(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
    if (step) {
      view.x += step[0] / view.scale;
      view.y += step[1] / view.scale;
    } else if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "Escape") choose(null);
    else if (event.key === "Enter") { // all that is in the window
      const edge = [[0, 0], [canvas.width, 0], [canvas.width, canvas.height], [0, canvas.height]];
      choose(inside(edge));
    } else return;
    event.preventDefault();
    event.stopPropagation();
    redraw();
  });
  root.querySelector("[name=in]").addEventListener("click", () => zoom(1.5));
  root.querySelector("[name=out]").addEventListener("click", () => zoom(1 / 1.5));
  root.querySelector("[name=whole]").addEventListener("click", () => { Object.assign(view, { x: 0, y: 0, scale: 1 }); redraw(); });
  root.querySelector("[name=none]").addEventListener("click", () => choose(null));
  colour.addEventListener("change", paint);
  dark.addEventListener("change", paint);
  new ResizeObserver(fit).observe(canvas);
  fit();
  paint();
  root.dataset.ready = "yes";
  root.querySelector("[name=list]").addEventListener("click", () => list.scrollIntoView());
  return { choose, forget: () => mark(null), zoom, view, redraw };
}

function mapPanel(source) {
  const radio = (value, text, checked) => make("label", { class: "check" }, make("input", { type: "radio", name: "drag", value, checked }), make("span", {}, text));
  const button = (name, text, label) => make("button", { type: "button", name, "aria-label": label }, text);
  const option = (value, text) => make("option", { value }, text);
  const root = make(
    "div", { class: "map" },
    make(
      "div", { class: "controls" },
      make("label", {}, make("span", {}, "colour"), make("select", { name: "colour" }, option("given", "given label"), option("suggested", "predicted label"), option("quality", "label quality"), option("issue", "label issues"))),
      make("fieldset", { class: "check" }, make("legend", { class: "unseen" }, "dragging"), radio("lasso", "drag selects", true), radio("move", "drag moves")),
      button("in", "+", "zoom in"), button("out", "−", "zoom out"), button("whole", "whole", "show the whole map"),
      button("none", "select none", "select none on the map"), button("list", "show them in the list"),
    ),
    make(
      "div", { class: "stage" },
      make("canvas", { tabindex: "0", role: "application", "aria-label": "map of all examples: arrows move it, + and - zoom, Enter selects all that are in view, Escape selects none" }),
      make("p", { class: "said", role: "status" }), make("div", { class: "tip", hidden: true }),
    ),
    make("ul", { class: "legend" }),
    make("p", { class: "hint" }, `Every point is an example; what lies together is alike in ${source}. A click or a line drawn around points selects them for the list.`),
  );
  root.querySelector("[name=none]").disabled = true;
  root.querySelector("[name=list]").disabled = true;
  return root;
}
