// Tables, which become cards on narrow screens, and tiles.
import * as format from "./format.js";

/** An element with a text and attributes. */
export const make = (name, text = "", attributes = {}) => {
  const element = document.createElement(name);
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

/**
 * A table whose first column names the row. `columns` are pairs of a heading and whether it holds text, `rows` lists of pairs of a
 * text and the number behind it, `none` what is said where there is no row.
 */
export const drawTable = (place, label, columns, rows, none) => {
  if (rows.length === 0) {
    place.replaceChildren(make("p", none, { class: "none" }));
    return;
  }
  // Roles are given, because a table that is laid out as cards would lose them.
  const table = make("table", "", { role: "table", "aria-label": label });
  const heading = table.createTHead();
  heading.setAttribute("role", "rowgroup");
  const head = heading.insertRow();
  head.setAttribute("role", "row");
  head.append(...columns.map(([name, text]) => make("th", name, { scope: "col", role: "columnheader", class: text ? "text" : "" })));
  const body = table.createTBody();
  body.setAttribute("role", "rowgroup");
  for (const row of rows) {
    const tr = body.insertRow();
    tr.setAttribute("role", "row");
    row.forEach(([text, value], i) => {
      const [name, isText] = columns[i];
      const role = i === 0 ? { scope: "row", role: "rowheader" } : { "data-label": name, role: "cell" };
      const wide = isText && i === row.length - 1 && i > 3;
      const cell = make(i === 0 ? "th" : "td", text, { ...role, class: `${isText ? "text" : ""}${wide ? " wide" : ""}` });
      if (value !== undefined) cell.dataset.value = value;
      tr.append(cell);
    });
  }
  place.replaceChildren(table);
};

/** The source's own tables, each in a section. */
export const drawTables = (place, tables) => {
  tables.forEach(({ title, note, columns, rows }, i) => {
    const section = place.children[i] ?? place.appendChild(make("section"));
    if (!section.firstChild) section.append(make("h2", title, { id: `table-${i}` }), make("p", "", { class: "note" }), make("div"));
    section.setAttribute("aria-labelledby", `table-${i}`);
    section.children[1].textContent = note;
    const cells = (row) => row.map((tagged) => [format.value(tagged), Object.values(tagged)[0]]);
    const isText = (column) => rows.every((row) => "text" in row[column]);
    drawTable(section.children[2], title, columns.map((name, column) => [name, column === 0 || isText(column)]), rows.map(cells), "Nothing yet.");
  });
};

/** The numbers that matter most, large. A tile stays where it came first. */
export class Tiles {
  #root;
  #tiles = new Map();

  constructor(root) {
    this.#root = root;
  }

  /** A number in words, with its unit in small type, and the raw one for programs. */
  show(key, name, value, text, unit = "") {
    if (!this.#tiles.has(key)) {
      const tile = make("div", "", { class: "tile", "data-tile": key });
      tile.append(make("dt", name), make("dd"));
      this.#root.append(tile);
      this.#tiles.set(key, tile.lastChild);
    }
    const place = this.#tiles.get(key);
    place.dataset.value = value ?? "";
    place.replaceChildren(text, ...(unit && value !== null ? [make("small", `\u00a0${unit}`)] : []));
  }

  clear() {
    this.#tiles.clear();
    this.#root.replaceChildren();
  }
}
