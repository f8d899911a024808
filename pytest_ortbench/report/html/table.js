"use strict";
(() => {
  const tables = Array.from(document.querySelectorAll("table.cases-table"));
  const rowsOf = new Map(tables.map((table) => [table, Array.from(table.tBodies[0].rows)]));
  const rows = tables.flatMap((table) => rowsOf.get(table));
  const form = document.getElementById("filters");
  const search = document.getElementById("search");
  const selects = Array.from(form.querySelectorAll("select"));
  const count = document.getElementById("count");
  const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const order = new Map(rows.map((row, index) => [row, index]));

  // Values in SI units stand beside the text; what was not measured goes last either way.
  const keys = (table, heading) => new Map(rowsOf.get(table).map((row) => {
    const cell = row.cells[heading.cellIndex];
    const value = cell.dataset.v;
    if (heading.classList.contains("n")) return [row, value === undefined ? null : Number(value)];
    return [row, cell.textContent.trim() || null];
  }));

  const compare = (left, right) => {
    if (typeof left === "number") return left - right;
    return left.localeCompare(right, "en", { numeric: true });
  };

  const sort = (heading) => {
    const table = heading.closest("table");
    const next = { none: "ascending", ascending: "descending", descending: "none" };
    const direction = next[heading.getAttribute("aria-sort")];
    for (const other of heading.parentElement.cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    heading.setAttribute("aria-sort", direction);
    const values = keys(table, heading);
    const sign = direction === "descending" ? -1 : 1;
    const sorted = Array.from(rowsOf.get(table)).sort((one, two) => {
      if (direction === "none") return order.get(one) - order.get(two);
      const left = values.get(one);
      const right = values.get(two);
      if (left === null || right === null) return (left === null) - (right === null);
      return sign * compare(left, right) || order.get(one) - order.get(two);
    });
    table.tBodies[0].append(...sorted);
  };

  const filter = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = selects.filter((select) => select.value)
      .map((select) => [select.dataset.filter, select.value]);
    let shown = 0;
    for (const row of rows) {
      const text = words.get(row);
      const keep = wanted.every((word) => text.includes(word)) &&
        chosen.every(([name, value]) => row.dataset[name] === value);
      row.hidden = !keep;
      shown += keep;
    }
    count.textContent = shown + " of " + rows.length + " cases";
  };

  for (const heading of tables.flatMap((table) => Array.from(table.tHead.rows[0].cells))) {
    if (heading.hasAttribute("data-fixed")) continue;
    const label = heading.querySelector(".sort");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label.textContent;
    label.replaceWith(button);
    button.addEventListener("click", () => sort(heading));
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  search.addEventListener("input", filter);
  for (const select of selects) select.addEventListener("change", filter);
  form.hidden = rows.length < 2;
  filter();
})();
