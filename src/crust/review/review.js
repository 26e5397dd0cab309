"use strict";
(async () => {
  const SIZE = 24;
  const LOOK = 2500; // milliseconds between looks for what other windows have done
  const REASONS = ["no class fits", "unreadable", "a duplicate", "not of this data"];
  let grid = find("grid"); // the list itself; of a table its body
  const picker = find("picker");
  const wanted = { what: "issues", given: -1, suggested: -1, search: "", sort: "error_score", picked: null };
  const decisions = new Map(); // by the example's index, as they are on disk
  const busy = new Set(); // indices that are on their way to the disk
  const disputed = new Map(); // by index: what this window wanted, and was not saved
  const unsaved = new Map(); // by index: what this window wanted, where saving failed
  const selected = new Set(); // positions
  const noted = new Map(); // by index: the version that a note of this window has made
  const suspects = new Set(); // indices
  const rows = new Map(); // of a table or texts, by index, as far as they were asked for
  let undoable = []; // { batch, indices, undoing }, the newest last; without a batch until it is saved
  let ended = false;
  let map = null;
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

  function apply() {
    const known = (position) => decisions.get(data.index[position]);
    const fits = {
      open: (position) => data.issue[position] && !decided(position),
      decided,
      excluded: (position) => decided(position) && known(position).kind === "exclude",
      noted: (position) => known(position) !== undefined && known(position).note !== "",
    }[wanted.what];
    found = fits ? chosen(data, wanted).filter(fits) : chosen(data, wanted);
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
      ? `${count(found.length)} ${found.length === 1 ? "example" : "examples"}, ${find("sort").selectedOptions[0].textContent}`
      : "Nothing to show here.";
    offerRest();
    mark();
    progress();
  }

  // The page holds the worst of very many examples: the server looks among the rest.
  function offerRest() {
    const place = find("rest");
    const asked = JSON.stringify([wanted.given, wanted.suggested, wanted.search]);
    place.hidden = data.count >= data.total || wanted.what !== "all" || wanted.picked !== null || place.dataset.asked === asked;
    if (place.hidden) return;
    const button = make("button", { type: "button" }, "look among the others too");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const answer = await ask("rest", { given: wanted.given, suggested: wanted.suggested, search: wanted.search });
        place.dataset.asked = asked;
        extend(data, answer);
        apply();
        if (answer.fitting > answer.count) say(`The ${count(answer.count)} worst of ${count(answer.fitting)} others that fit are in the list now: say more precisely what to look for.`);
        else if (!answer.fitting) say("None of the others fits.");
      } catch (error) {
        say(error.message);
      }
    });
    place.replaceChildren(`These are of the ${count(data.count)} examples of the lowest label quality, of ${count(data.total)}. `, button);
  }

  function progress() {
    let done = 0;
    for (const [index, known] of decisions) {
      if (known.kind !== null && suspects.has(index)) done += 1;
    }
    const words = `${count(done)} of ${count(suspects.size)} label issues decided, ${count(suspects.size - done)} left; you are `;
    find("progress").replaceChildren(words, make("bdi", {}, data.who));
    find("bar").max = Math.max(1, suspects.size);
    find("bar").value = done;
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
    const about = { "data-place": place, "data-index": index, tabindex: "-1" };
    const state = (tag) => make(tag, { class: "state" });
    if (data.kind === "table") {
      return make(
        "tr", about, make("th", { scope: "row", class: "fixed" }, rowName(data, position)),
        make("td", { class: "fixed" }, labelsLine(data, position)), make("td", { class: "fixed number" }, quality(data, position)),
        state("td"), ...rowCells(data, index),
      );
    }
    const numbers = numbersLine(data, position, false);
    if (data.kind === "text") {
      const head = make("div", { class: "head" }, nameLine(data, position), labelsLine(data, position), numbers, state("p"));
      const text = row && row[0].length > 320 ? `${row[0].slice(0, 320)}…` : row ? row[0] : "";
      return make("li", { role: "option", ...about }, head, make("p", { class: "words text", dir: "auto" }, text));
    }
    return make(
      "li", { role: "option", ...about },
      picture(index, `${nameOf(data, position)}, labelled ${data.classes[data.given[position]]}`),
      labelsLine(data, position), numbers, nameLine(data, position), state("p"),
    );
  }

  function stateText(index) {
    if (busy.has(index)) return ["saving …"];
    const failed = unsaved.has(index) ? [make("span", { class: "alarm" }, "not saved: ", ...words(...unsaved.get(index).slice(2, 5)))] : [];
    const known = decisions.get(index);
    if (known === undefined || known.kind === null) return failed;
    const what = known.kind === "relabel" ? ["now ", make("bdi", {}, data.classes[known.label])] : words(known.kind, null, known.reason);
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
        "item", known && known.kind ? `done ${known.kind}` : "",
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
    for (const id of ["take", "keep", "other", "exclude", "skip"]) find(id).disabled = found.length === 0;
    aside();
  }

  // The current example large, with its evidence.
  function aside() {
    const position = part()[current];
    const panel = find("panel");
    find("judge").hidden = position === undefined;
    if (position === undefined) {
      find("example").replaceChildren();
      find("evidence").replaceChildren();
      panel.dataset.index = "";
      return;
    }
    const index = data.index[position];
    markLabels(position);
    if (panel.dataset.index === String(index)) return;
    panel.dataset.index = index;
    const known = decisions.get(index);
    find("note").value = known ? known.note : "";
    const row = make("div", {});
    const near = data.evidence[index] || [];
    const same = data.same[index] || [];
    find("example").replaceChildren(
      nameLine(data, position, "h2"), picture(index, nameOf(data, position)) || "",
      data.kind === "text" ? row : "", labelsLine(data, position), numbersLine(data, position),
    );
    const cards = (list) => (data.kind === "images" || data.kind === "text" ? besideCards({ ...data, rows: Object.fromEntries(rows) }, list, picture) : "");
    const draw = () => {
      const all = Object.fromEntries(rows);
      if (data.kind === "text" && rows.has(index)) row.replaceChildren(make("p", { class: "row text", dir: "auto", tabindex: "0" }, rows.get(index)[0]));
      find("evidence").replaceChildren(
        near.length ? make("h3", {}, "Evidence") : "", near.length ? evidenceLine(data, position, near) : "",
        data.kind === "table" ? besideEachOther(data, index, near, all) || "" : near.length ? cards(near) : "",
        same.length ? make("h3", {}, "Duplicates, side by side") : "", same.length ? sameLine(data, position, same) : "",
        same.length && data.kind === "table" ? besideEachOther(data, index, same, all) || "" : same.length ? cards(same) : "",
      );
    };
    draw();
    if (data.kind !== "images") fetchRows([index, ...near.map((one) => one.index), ...same.map((one) => one.index)], () => { if (panel.dataset.index === String(index)) draw(); });
    panel.scrollTop = 0;
  }

  async function fetchRows(indices, then) {
    const missing = [...new Set(indices)].filter((one) => !rows.has(one));
    try {
      for (const one of missing) {
        const cells = data.rows[one] || (await ask(`row/${one}`)).row;
        if (cells) rows.set(one, cells);
      }
      if (missing.length) then();
    } catch (error) {
      find("evidence").replaceChildren(make("p", { class: "missing" }, error.message));
    }
  }

  // Classes by key, 1 to 9 and then 0: digits by themselves, else all classes in their order, or those given most.
  function numbered() {
    const all = data.classes.map((_, number) => number);
    if (data.classes.every((name) => /^[0-9]$/.test(name))) {
      const keys = new Array(10).fill(undefined);
      all.forEach((number) => { keys[(Number(data.classes[number]) + 9) % 10] = number; });
      return keys;
    }
    const sums = all.map(() => 0);
    data.given.forEach((number) => { sums[number] += 1; });
    return all.length <= 10 ? all : all.sort((a, b) => sums[b] - sums[a] || a - b).slice(0, 9);
  }

  function markLabels(position) {
    const known = decisions.get(data.index[position]);
    const now = known && known.kind === "relabel" ? known.label : known && known.kind === "keep" ? data.given[position] : -1;
    for (const button of find("labels").children) {
      const number = Number(button.dataset.class);
      button.className = [
        number === data.given[position] ? "given" : "", number === data.suggested[position] ? "suggested" : "", number === now ? "now" : "",
      ].filter(Boolean).join(" ");
      button.setAttribute("aria-pressed", String(number === now));
    }
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
    find("grid").scrollLeft = 0;
    move(Math.min(place, part().length - 1));
  }

  function columns() {
    if (data.kind !== "images") return 1;
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
      for (const change of changes) {
        if (noted.get(change[0]) === change[1] + 1) change[1] += 1; // a note of one's own, saved since the key, is no conflict
      }
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

  function words(kind, label, reason) {
    if (kind === null) return ["undecided"];
    if (kind === "exclude") return [`excluded${reason ? `: ${reason}` : ""}`];
    return kind === "relabel" ? ["“", make("bdi", {}, data.classes[label]), "”"] : [kind === "keep" ? "kept" : "skipped"];
  }

  function dispute() {
    const lines = [...disputed].map(([index, mine]) => {
      const now = decisions.get(index);
      return make(
        "li", {}, `Example ${index} is `, ...words(now ? now.kind : null, now ? now.label : null, now ? now.reason : null),
        ...(now ? [" by ", make("bdi", {}, now.who), ` ${clock(now.at)}`] : []),
        mine ? ", and your " : ", and was not undone", ...(mine ? [...words(mine[2], mine[3], mine[4]), " was not saved"] : []),
      );
    });
    const theirs = make("button", { type: "button", id: "theirs" }, "leave it so");
    theirs.addEventListener("click", () => { disputed.clear(); say(null); mark(); });
    const ours = make("button", { type: "button", id: "ours" }, "use mine");
    ours.addEventListener("click", () => {
      const again = [...disputed].filter(([, mine]) => mine).map(([index, mine]) => {
        const now = decisions.get(index);
        return [index, now ? now.version : 0, ...mine.slice(2)];
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
    if (picker.open) picker.close();
    if (number === undefined) return;
    decide((position) => (number === data.given[position] ? ["keep", null] : ["relabel", number]));
  }

  // --- exclude, and notes

  function exclude(reason) {
    find("why").close();
    decide(() => ["exclude", null, reason]);
  }

  function askWhy() {
    if (targets().length) find("why").showModal();
  }

  REASONS.forEach((reason, i) => {
    const button = make("button", { type: "button" }, make("kbd", {}, i + 1), ` ${reason}`);
    button.addEventListener("click", () => exclude(reason));
    find("reasons").append(make("li", {}, button));
  });
  find("why").addEventListener("keydown", (event) => {
    const reason = REASONS[Number(event.key) - 1];
    if (reason === undefined || event.repeat) return;
    event.preventDefault();
    event.stopPropagation();
    exclude(reason);
  });

  // A note is kept beside whatever is decided, and can stand alone; in its turn, for the version that is there then.
  function saveNote() {
    const index = Number(find("panel").dataset.index);
    const text = find("note").value;
    if (find("panel").dataset.index === "" || text === (decisions.get(index) || { note: "" }).note) return;
    inTurn(async () => {
      const known = decisions.get(index) || { version: 0, kind: null, label: null, reason: null };
      const change = [index, known.version, known.kind, known.label, known.reason, text];
      try {
        const answer = await ask("decide", { changes: [change] });
        take(answer, new Map([[index, change]]));
        if (answer.decisions.length) noted.set(index, answer.decisions[0].version);
      } catch (error) {
        say(`The note is not saved. ${error.message}`);
      }
      mark();
    });
  }

  find("note").addEventListener("change", saveNote);
  find("note").addEventListener("keydown", (event) => {
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
      event.preventDefault();
      event.target.blur();
      move(current);
    }
  });

  // --- the end

  async function finish() {
    await queue;
    const sums = { keep: 0, relabel: 0, exclude: 0, skip: 0 };
    let noted = 0;
    for (const known of decisions.values()) {
      if (known.kind !== null) sums[known.kind] += 1;
      if (known.note) noted += 1;
    }
    const left = [...suspects].filter((index) => !(decisions.get(index) || { kind: null }).kind).length;
    const lines = [["kept", sums.keep], ["new labels", sums.relabel], ["excluded", sums.exclude], ["skipped", sums.skip], ["with a note", noted], ["label issues left", left]];
    find("sums").replaceChildren(...lines.flatMap(([name, number]) => [make("dt", {}, name), make("dd", {}, count(number))]));
    find("commands").textContent = data.next.join("\n");
    find("then").hidden = find("commands").hidden = data.next.length === 0;
    find("finished").showModal();
  }

  find("finish").addEventListener("click", finish);
  find("go-on").addEventListener("click", () => find("finished").close());
  find("end").addEventListener("click", async () => {
    try {
      await ask("finish", {});
      ended = true;
      find("end").disabled = true;
      find("end").textContent = "ended: this window can be closed";
      find("go-on").hidden = true;
    } catch (error) {
      find("finished").close();
      say(error.message);
    }
  });

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

  let numbers = [];
  const KEYS = {
    Enter: () => decide(suggestion),
    k: () => decide(() => ["keep", null]),
    r: pick,
    x: askWhy,
    s: () => decide(() => ["skip", null]),
    t: () => { document.body.classList.add("reading"); find("note").focus(); },
    u: undo,
    n: () => turn(page + 1, 0),
    p: () => turn(page - 1, 0),
    " ": () => part().length && select(part()[current]),
    a: () => { part().forEach((position) => selected.add(position)); mark(); },
    Escape: () => { document.body.classList.remove("reading"); selected.clear(); mark(); },
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
    if (document.querySelector("dialog[open]") || typing(event)) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const digit = /^[0-9]$/.test(key) ? numbers[(Number(key) + 9) % 10] : undefined;
    const act = digit === undefined ? KEYS[key] : () => relabel(digit);
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

  document.querySelector("main").addEventListener("click", (event) => {
    const element = event.target.closest("#grid [data-place]");
    if (!element || event.target.closest(".more")) return;
    const place = Number(element.dataset.place);
    if (event.shiftKey) {
      for (let i = Math.min(place, current); i <= Math.max(place, current); i += 1) selected.add(part()[i]);
    } else if (event.ctrlKey || event.metaKey) select(part()[place]);
    else document.body.classList.add("reading"); // where the details open over the list
    move(place);
  });
  find("close-panel").addEventListener("click", () => { document.body.classList.remove("reading"); move(current); });

  find("take").addEventListener("click", () => decide(suggestion));
  find("keep").addEventListener("click", () => decide(() => ["keep", null]));
  find("exclude").addEventListener("click", askWhy);
  find("skip").addEventListener("click", () => decide(() => ["skip", null]));
  find("other").addEventListener("click", pick);
  find("undo").addEventListener("click", undo);
  find("back").addEventListener("click", () => turn(page - 1, 0));
  find("next").addEventListener("click", () => turn(page + 1, 0));
  find("labels").addEventListener("click", (event) => {
    const button = event.target.closest("button[data-class]");
    if (button) relabel(Number(button.dataset.class));
  });
  listenToFilters(wanted, apply);

  // The map is laid out when it is first asked for.
  find("show-map").addEventListener("click", async () => {
    const place = find("map");
    const open = place.hidden;
    place.hidden = !open;
    find("show-map").setAttribute("aria-expanded", String(open));
    if (!open || map) return;
    map = {};
    place.replaceChildren(make("p", { class: "hint", role: "status" }, "The map is being laid out …"));
    try {
      const answer = await ask("map");
      if (answer.xy === null) {
        place.replaceChildren(make("p", { class: "hint" }, "There are neither features nor probabilities to lay a map out from."));
        return;
      }
      data.xy = unpack(answer.xy, Uint16Array);
      const root = mapPanel(answer.source);
      place.replaceChildren(root);
      map = startMap(data, root, {
        list: find("count"),
        shown: (position) => make("div", {}, picture(data.index[position], "") || "", nameLine(data, position), labelsLine(data, position)),
        select: (picked) => {
          pickOnMap(wanted, picked);
          for (const name of ["what", "given", "suggested", "search"]) find(name).value = wanted[name];
          apply();
        },
      });
    } catch (error) {
      map = null;
      place.replaceChildren(make("p", { class: "missing" }, error.message));
    }
  });

  // What other windows have done shows here too.
  async function look() {
    if (ended) return;
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
  if (data.without) say(`Without pictures or rows: ${data.without}`);
  const list = exampleList(data, grid, ["example", "given → predicted", "quality", "decision"]);
  if (data.kind === "table") {
    list.setAttribute("role", "grid");
    list.setAttribute("aria-multiselectable", "true");
    list.setAttribute("aria-label", "examples");
    grid = list.tBodies[0];
  }
  sizeSlider(list);
  for (let i = 0; i < data.count; i += 1) if (data.issue[i]) suspects.add(data.index[i]);
  for (const name of ["given", "suggested"]) fillClasses(find(name), data, "any");
  numbers = numbered();
  find("labels").append(...[...numbers.keys()].filter((i) => numbers[i] !== undefined).map((i) => make(
    "button", { type: "button", "data-class": numbers[i] },
    ...(data.classes[numbers[i]] === String((i + 1) % 10) ? [] : [make("kbd", {}, (i + 1) % 10), " "]), make("bdi", {}, data.classes[numbers[i]]),
  )));
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
