"use strict";
// A button in a heading sorts its table: largest first, smallest first, as it was. What is missing stays at the end.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const first = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const numeric = head.dataset.kind === "number";
      const order = numeric ? ["descending", "ascending", null] : ["ascending", "descending", null];
      const next = order[(order.indexOf(before) + 1) % order.length];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (next) head.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const value = (row) => row.cells[column].dataset.value ?? "";
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        return sign * (numeric ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true }));
      };
      body.append(...(next ? [...first].sort(compare) : first));
    });
  });
}
