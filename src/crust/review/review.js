"use strict";
(async () => {
  const SIZE = 24;
  const LOOK = 2500; // milliseconds between looks for what other windows have done
  const grid = find("grid");
  const picker = find("picker");
  const wanted = { what: "suspects", given: -1, suggested: -1, differs: false, least: 0, search: "", sort: "error_score" };
  const decisions = new Map(); // by the example's index, as they are on disk
  const busy = new Set(); // indices that are on their way to the disk
  const disputed = new Map(); // by index: what this window wanted, and was not saved
  const unsaved = new Map(); // by index: what this window wanted, where saving failed
  const selected = new Set(); // positions
  const suspects = new Set(); // indices
  let undoable = []; // { batch, indices, undoing }, the newest last; without a batch until it is saved
  let queue = Promise.resolve(); // saving and undoing go one after another, in the order of the keys
  let last = 0;
  let data = null;
  let found = [];
  let page = 0;
  let current = 0; // place on the page
  let choices = [];
  let choice = 0;

  async function ask(path, body) {
    const options = body === undefined ? {} : {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    };
    let answer;
    let content;
    try {
      answer = await fetch(path, options);
      content = await answer.json();
    } catch {
      throw new Error("The server does not answer: start crust review again, and open its new link.");
    }
    if (!answer.ok) throw Object.assign(new Error(content.error), { status: answer.status });
    return content;
  }

  function inTurn(work) {
    const done = queue.then(work);
    queue = done.catch(() => {}); // what fails does not keep the others from their turn
    return done;
  }

  // --- what is shown

  function part() {
    return found.slice(page * SIZE, (page + 1) * SIZE);
  }

  function pages() {
    return Math.max(1, Math.ceil(found.length / SIZE));
  }

  function decided(position) {
    const known = decisions.get(data.index[position]);
    return known !== undefined && known.kind !== null;
  }

  function suspect(position) {
    if (data.least !== null) return data.error_score[position] >= data.least && data.error_score[position] <= data.scale;
    return data.given[position] !== data.suggested[position];
  }

  function apply() {
    const fits = {
      suspects: suspect,
      open: (position) => suspect(position) && !decided(position),
      decided,
      all: () => true,
    }[wanted.what];
    found = chosen(data, wanted).filter(fits);
    page = 0;
    current = 0;
    selected.clear();
    draw();
  }

  function draw() {
    grid.replaceChildren(...part().map(card));
    find("place").textContent = `page ${page + 1} of ${pages()}`;
    find("back").disabled = page === 0;
    find("next").disabled = page >= pages() - 1;
    find("count").textContent = found.length
      ? `${found.length.toLocaleString("en")} ${found.length === 1 ? "example" : "examples"}, lowest label quality first`
      : "Nothing to show here.";
    mark();
    progress();
  }

  function progress() {
    let done = 0;
    for (const [index, known] of decisions) {
      if (known.kind !== null && suspects.has(index)) done += 1;
    }
    const words = `${done.toLocaleString("en")} of ${suspects.size.toLocaleString("en")} suspects decided; you are `;
    find("progress").replaceChildren(words, make("bdi", {}, data.who));
    find("undo").disabled = undoable.every((one) => one.undoing);
  }

  function picture(index, name) {
    if (data.looks !== "images") return null;
    const image = make("img", { src: `image/${index}`, alt: name, loading: "lazy", draggable: "false" });
    image.addEventListener("error", () => image.replaceWith(make("p", { class: "missing" }, "this image cannot be read, or is no longer there")), { once: true });
    return image;
  }

  function card(position, place) {
    const index = data.index[position];
    const row = data.rows[index];
    return make(
      "li", { role: "option", "data-place": place, "data-index": index, tabindex: "-1" },
      picture(index, `${nameOf(data, position)}, labelled ${data.classes[data.given[position]]}`),
      row ? rowBlock(data.columns, row, 120) : null,
      labelsLine(data, position),
      make("p", { class: "numbers" }, `label quality ${quality(data, position)}`),
      make("p", { class: "name", dir: "auto" }, nameOf(data, position)),
      make("p", { class: "state" }),
    );
  }

  function stateText(index) {
    if (busy.has(index)) return ["saving …"];
    const failed = unsaved.has(index) ? [make("span", { class: "alarm" }, "not saved: ", ...words(...unsaved.get(index).slice(2)))] : [];
    const known = decisions.get(index);
    if (known === undefined || known.kind === null) return failed;
    const what = known.kind === "relabel" ? ["now ", make("bdi", {}, data.classes[known.label])]
      : [known.kind === "keep" ? "kept" : "skipped"];
    const who = make("span", { class: "who" }, " by ", make("bdi", {}, known.who), ` ${clock(known.at)}`);
    return [...failed, failed.length ? ", " : "", ...what, who];
  }

  function clock(at) {
    const when = new Date(at);
    const today = when.toDateString() === new Date().toDateString();
    return today ? when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false }) : when.toLocaleDateString();
  }

  // What changes often is set on the cards that are there, so that the focus stays.
  function mark() {
    for (const element of grid.children) {
      const position = part()[Number(element.dataset.place)];
      const index = data.index[position];
      const known = decisions.get(index);
      element.querySelector(".state").replaceChildren(...stateText(index));
      element.className = [
        known && known.kind ? `done ${known.kind}` : "",
        selected.has(position) ? "selected" : "",
        Number(element.dataset.place) === current ? "current" : "",
        disputed.has(index) ? "disputed" : "",
        unsaved.has(index) ? "unsaved" : "",
      ].filter(Boolean).join(" ");
      element.setAttribute("aria-selected", String(selected.has(position)));
      element.tabIndex = Number(element.dataset.place) === current ? 0 : -1;
    }
    const count = selected.size;
    find("selected").textContent = count ? `${count} selected` : "";
    for (const id of ["take", "keep", "other", "skip"]) find(id).disabled = found.length === 0;
    aside();
  }

  // The current example large, with its evidence.
  function aside() {
    const position = part()[current];
    const panel = find("panel");
    if (position === undefined) {
      panel.replaceChildren();
      panel.dataset.index = "";
      return;
    }
    const index = data.index[position];
    if (panel.dataset.index === String(index)) return;
    panel.dataset.index = index;
    const row = make("div", {});
    panel.replaceChildren(
      make("h2", { dir: "auto" }, nameOf(data, position)),
      picture(index, nameOf(data, position)) || "", labelsLine(data, position), numbersLine(data, position), row, near(index) || "",
    );
    if (data.looks === "rows") fillRow(row, index, panel);
  }

  async function fillRow(place, index, panel) {
    try {
      const cells = (await ask(`row/${index}`)).row;
      if (cells && panel.dataset.index === String(index)) place.replaceChildren(rowBlock(data.columns, cells, 0));
    } catch (error) {
      place.replaceChildren(make("p", { class: "missing" }, error.message));
    }
  }

  function near(index) {
    const medoids = data.evidence[index];
    if (!medoids || !medoids.length) return null;
    const list = make("ul", { class: "gallery near" });
    for (const one of medoids) {
      const row = data.rows[one.index];
      list.append(make(
        "li", {}, picture(one.index, `example ${one.index}`), row ? rowBlock(data.columns, row, 80) : null,
        make("p", { class: "labels" }, make("bdi", {}, data.classes[one.label])),
      ));
    }
    return make("div", {}, make("h3", {}, "Nearest medoids, with their labels"), list);
  }

  function move(to) {
    if (to < 0 || to >= part().length) return;
    current = to;
    mark();
    const element = grid.children[current];
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  }

  function turn(to, place) {
    const next = Math.min(Math.max(0, to), pages() - 1);
    if (next === page) return;
    page = next;
    selected.clear();
    current = place;
    draw();
    window.scrollTo(0, 0);
    move(Math.min(place, part().length - 1));
  }

  function columns() {
    return window.getComputedStyle(grid).gridTemplateColumns.split(" ").length;
  }

  // --- what is decided

  function targets() {
    const here = part();
    return selected.size ? here.filter((position) => selected.has(position)) : here.slice(current, current + 1);
  }

  // `how` gives for a position what is decided of it: [kind, label].
  async function decide(how) {
    const positions = targets().filter((position) => !busy.has(data.index[position]));
    if (!positions.length) return;
    const changes = positions.map((position) => {
      const index = data.index[position];
      const known = decisions.get(index);
      return [index, known ? known.version : 0, ...how(position)];
    });
    selected.clear();
    onward(positions);
    await send(changes);
  }

  // To the next one that is not decided, on the next page where this one is done.
  function onward(positions) {
    const here = part();
    const next = here.findIndex((position, place) => (
      place > current && !positions.includes(position) && !decided(position) && !busy.has(data.index[position])
    ));
    if (next >= 0) move(next);
    else if (here.every((position) => positions.includes(position) || decided(position) || busy.has(data.index[position]))) {
      if (page < pages() - 1) turn(page + 1, 0);
      else mark();
    } else if (current + 1 < here.length) move(current + 1);
    else mark();
  }

  function send(changes) {
    const indices = changes.map((change) => change[0]);
    // Among those to undo before it is saved: undoing means the last one that was decided, and waits for it.
    const made = { batch: null, indices, undoing: false };
    undoable.push(made);
    hold(indices);
    return inTurn(async () => {
      try {
        const answer = await ask("decide", { changes });
        take(answer, new Map(changes.map((change) => [change[0], change])));
        if (answer.decisions.length) made.batch = answer.batch;
      } catch (error) {
        for (const change of changes) unsaved.set(change[0], change);
        say(`Not saved. ${error.message}`);
      }
      if (made.batch === null) forget(made);
      release(indices);
    });
  }

  // Shown as on their way, and not to be decided until they have arrived.
  function hold(indices) {
    indices.forEach((index) => busy.add(index));
    mark();
    progress();
  }

  function release(indices) {
    indices.forEach((index) => busy.delete(index));
    mark();
    progress();
  }

  function forget(one) {
    undoable = undoable.filter((other) => other !== one);
  }

  // What is on disk now; and where somebody else was first, both versions, for a person to choose.
  function take(answer, mine) {
    for (const one of answer.decisions) {
      const known = decisions.get(one.example);
      if (!known || known.version < one.version) {
        decisions.set(one.example, one);
        unsaved.delete(one.example);
      }
      if (mine && mine.has(one.example)) disputed.delete(one.example);
    }
    for (const one of answer.conflicts || []) {
      if (one.now) decisions.set(one.example, one.now);
      unsaved.delete(one.example);
      disputed.set(one.example, mine ? mine.get(one.example) : null);
    }
    if (answer.conflicts && answer.conflicts.length) dispute();
  }

  function words(kind, label) {
    if (kind === null) return ["undecided"];
    return kind === "relabel" ? ["“", make("bdi", {}, data.classes[label]), "”"] : [kind === "keep" ? "kept" : "skipped"];
  }

  function dispute() {
    const lines = [...disputed].map(([index, mine]) => {
      const now = decisions.get(index);
      return make(
        "li", {}, `Example ${index} is `, ...words(now ? now.kind : null, now ? now.label : null),
        ...(now ? [" by ", make("bdi", {}, now.who), ` ${clock(now.at)}`] : []),
        mine ? ", and your " : ", and was not undone", ...(mine ? [...words(mine[2], mine[3]), " was not saved"] : []),
      );
    });
    const theirs = make("button", { type: "button", id: "theirs" }, "leave it so");
    theirs.addEventListener("click", () => { disputed.clear(); say(null); mark(); });
    const ours = make("button", { type: "button", id: "ours" }, "use mine");
    ours.addEventListener("click", () => {
      const again = [...disputed].filter(([, mine]) => mine).map(([index, mine]) => {
        const now = decisions.get(index);
        return [index, now ? now.version : 0, mine[2], mine[3]];
      });
      disputed.clear();
      say(null);
      if (again.length) send(again);
      else mark();
    });
    const both = [...disputed.values()].some((mine) => mine) ? [ours, theirs] : [theirs];
    say(make("div", {}, make("p", {}, "Changed in another window meanwhile:"), make("ul", {}, ...lines), make("p", { class: "controls" }, ...both)));
  }

  function say(what) {
    const banner = find("banner");
    if (what === null) {
      banner.replaceChildren();
      banner.hidden = true;
      return;
    }
    banner.hidden = false;
    if (typeof what !== "string") {
      banner.replaceChildren(what);
      return;
    }
    const close = make("button", { type: "button" }, "close");
    close.addEventListener("click", () => say(null));
    banner.replaceChildren(make("p", {}, what), close);
  }

  async function undo() {
    const one = undoable.filter((other) => !other.undoing).pop();
    if (one === undefined) return;
    one.undoing = true;
    progress();
    await inTurn(() => takeBack(one));
  }

  async function takeBack(one) {
    // It was not saved, which is said already; or a newer one was not undone, and comes first.
    if (one.batch === null || !one.undoing) return;
    hold(one.indices);
    try {
      const answer = await ask("undo", { batch: one.batch });
      forget(one);
      take(answer, null);
      const first = answer.decisions.length ? part().findIndex((p) => data.index[p] === answer.decisions[0].example) : -1;
      if (first >= 0) move(first);
      if (first < 0 && answer.decisions.length) say(`Undone: example ${answer.decisions.map((two) => two.example).join(", ")}.`);
    } catch (error) {
      if (error.status === 400) forget(one); // it never can be: another window has undone it
      else undoable.forEach((other) => { other.undoing = false; });
      say(`Not undone. ${error.message}`);
    }
    release(one.indices);
  }

  const suggestion = (position) => (
    data.suggested[position] === data.given[position] ? ["keep", null] : ["relabel", data.suggested[position]]
  );

  // --- another label

  function pick() {
    if (!targets().length) return;
    find("wanted").value = "";
    listClasses();
    picker.showModal();
    find("wanted").focus();
  }

  function listClasses() {
    const text = find("wanted").value.trim().toLowerCase();
    const names = data.classes.map((name, number) => [name, number]).filter(([name]) => name.toLowerCase().includes(text));
    const rank = ([name]) => (name.toLowerCase() === text ? 0 : name.toLowerCase().startsWith(text) ? 1 : 2);
    choices = names.sort((a, b) => rank(a) - rank(b) || a[1] - b[1]).slice(0, 200);
    choice = 0;
    find("classes").replaceChildren(...choices.map(([name, number]) => (
      make("li", {}, make("button", { type: "button", "data-class": number, tabindex: "-1" }, make("bdi", {}, name)))
    )));
    markChoice();
  }

  function markChoice() {
    [...find("classes").children].forEach((element, i) => {
      element.className = i === choice ? "current" : "";
      if (i === choice) element.scrollIntoView({ block: "nearest" });
    });
  }

  function relabel(number) {
    picker.close();
    decide((position) => (number === data.given[position] ? ["keep", null] : ["relabel", number]));
  }

  find("wanted").addEventListener("input", listClasses);
  find("wanted").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      choice = Math.min(Math.max(0, choice + step), choices.length - 1);
      markChoice();
      event.preventDefault();
    } else if (event.key === "Enter") {
      if (choices.length && !event.repeat) relabel(choices[choice][1]);
      event.preventDefault();
    }
  });
  find("classes").addEventListener("click", (event) => {
    const button = event.target.closest("button[data-class]");
    if (button) relabel(Number(button.dataset.class));
  });

  // --- keys and clicks

  function select(position) {
    if (selected.has(position)) selected.delete(position);
    else selected.add(position);
    mark();
  }

  const KEYS = {
    Enter: () => decide(suggestion),
    k: () => decide(() => ["keep", null]),
    r: pick,
    s: () => decide(() => ["skip", null]),
    u: undo,
    n: () => turn(page + 1, 0),
    p: () => turn(page - 1, 0),
    " ": () => part().length && select(part()[current]),
    a: () => { part().forEach((position) => selected.add(position)); mark(); },
    Escape: () => { selected.clear(); mark(); },
    "/": () => find("search").focus(),
    ArrowRight: () => (current + 1 < part().length ? move(current + 1) : turn(page + 1, 0)),
    ArrowLeft: () => (current > 0 ? move(current - 1) : turn(page - 1, SIZE - 1)),
    ArrowDown: () => move(current + columns()),
    ArrowUp: () => move(current - columns()),
    Home: () => move(0),
    End: () => move(part().length - 1),
  };
  const MOVES = new Set(["n", "p", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End"]);

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.id === "search") {
      event.target.blur();
      move(current);
      return;
    }
    if (picker.open || typing(event)) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = KEYS[key];
    if (!act) return;
    // A key that is held down moves on, but decides once; on a button too, which Enter would press again and again.
    const held = event.repeat && !MOVES.has(key);
    if (event.target.closest("button") && (key === " " || (key === "Enter" && !held))) return;
    event.preventDefault();
    if (held) return;
    if (event.shiftKey && event.key.startsWith("Arrow") && part().length) {
      selected.add(part()[current]);
      act();
      selected.add(part()[current]);
      mark();
    } else act();
  });

  grid.addEventListener("click", (event) => {
    const element = event.target.closest("li[data-place]");
    if (!element) return;
    const place = Number(element.dataset.place);
    if (event.shiftKey) {
      for (let i = Math.min(place, current); i <= Math.max(place, current); i += 1) selected.add(part()[i]);
    } else if (event.ctrlKey || event.metaKey) select(part()[place]);
    move(place);
  });

  find("take").addEventListener("click", () => decide(suggestion));
  find("keep").addEventListener("click", () => decide(() => ["keep", null]));
  find("skip").addEventListener("click", () => decide(() => ["skip", null]));
  find("other").addEventListener("click", pick);
  find("undo").addEventListener("click", undo);
  find("back").addEventListener("click", () => turn(page - 1, 0));
  find("next").addEventListener("click", () => turn(page + 1, 0));
  find("filters").addEventListener("submit", (event) => event.preventDefault());
  for (const name of ["what", "given", "suggested"]) {
    find(name).addEventListener("change", (event) => {
      wanted[name] = name === "what" ? event.target.value : Number(event.target.value);
      apply();
    });
  }
  let waiting = 0;
  find("search").addEventListener("input", (event) => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => { wanted.search = event.target.value; apply(); }, 120);
  });

  // What other windows have done shows here too.
  async function look() {
    if (!document.hidden) {
      try {
        const answer = await ask(`changes/${last}`);
        last = answer.last;
        if (answer.decisions.length) {
          take(answer, null);
          mark();
          progress();
        }
      } catch { /* said when something is to be saved */ }
    }
    window.setTimeout(look, LOOK);
  }

  try {
    const [packed, state] = await Promise.all([ask("data"), ask("state")]);
    data = opened(packed);
    if (packed.warning) {
      find("warning").textContent = packed.warning;
      find("warning").hidden = false;
    }
    if (data.name) document.title = document.querySelector("h1").textContent = `Review of ${data.name}`;
    take(state, null);
    undoable = state.undoable.map((batch) => ({ batch, indices: [], undoing: false }));
    last = state.last;
  } catch (error) {
    say(error.message);
    return;
  }
  grid.classList.toggle("rows", data.columns.length > 0);
  for (let i = 0; i < data.count; i += 1) if (suspect(i)) suspects.add(data.index[i]);
  for (const name of ["given", "suggested"]) fillClasses(find(name), data, "any");
  // Begin where the last session ended: at the first suspect that is not decided.
  apply();
  const start = found.findIndex((position) => !decided(position));
  if (start > 0) {
    page = Math.floor(start / SIZE);
    current = start % SIZE;
    draw();
  }
  if (found.length) move(current);
  window.setTimeout(look, LOOK);
  document.documentElement.dataset.ready = "yes";
})();
