"use strict";
// Tables that can be sorted and filtered.  Without this script all of it is still there to read.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.dataset.sort) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const numbers = head.dataset.sort === "number";
    const value = (row) => {
      const cell = row.cells[column];
      return numbers ? Number(cell.dataset.value) : cell.textContent.trim();
    };
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      const collator = new Intl.Collator(document.documentElement.lang, { numeric: true });
      const compare = numbers ? (a, b) => a.key - b.key : (a, b) => collator.compare(a.key, b.key);
      const rows = [...body.rows].map((row) => ({ row, key: value(row) }));
      rows.sort((a, b) => sign * compare(a, b));
      body.append(...rows.map((one) => one.row));
    });
  });
}
const filtered = document.querySelector("table[data-filtered]");
if (filtered) {
  document.querySelector(".filter").hidden = false;
  const input = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const rows = [...filtered.tBodies[0].rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let count = 0;
    for (const { row, text } of rows) {
      row.hidden = !text.includes(wanted);
      if (!row.hidden) count += 1;
    }
    shown.textContent = wanted ? shown.dataset.text.replace("%n", String(count)) : "";
  });
}
