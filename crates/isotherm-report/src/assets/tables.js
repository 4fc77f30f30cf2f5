"use strict";
// Tables: sorting, copying, and the numbers of each figure as a table for those who cannot or will not read a chart.

/** Digits before the point in groups of three, parted by a narrow space. */
const groupDigits = (text) => {
  const [whole, fraction] = text.split(".");
  const grouped = whole.replace("-", "").length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
};

/** Decimals of four significant digits. */
const decimalsOf = (value) => Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))));

/** A number for people, as the report's own text has it: four significant digits, whole numbers whole; a dash where there is none. */
const formatNumber = (value) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "\u2013";
  if (value === 0) return "0";
  if (Math.abs(value) < 1e-4) return value.toExponential(2);
  return groupDigits(value.toFixed(Number.isInteger(value) ? 0 : decimalsOf(value)));
};

/** A mean, with half its confidence interval where there is one, to as many decimals as the mean. Nought alone is without them. */
const formatWithHalf = (mean, half) => {
  if (half === null || half === undefined) return formatNumber(mean);
  if (half === 0 || Math.abs(mean) < 1e-4) return `${formatNumber(mean)} \u00b1 ${formatNumber(half)}`;
  const decimals = Math.max(decimalsOf(mean), half < 0.5 ? 1 : 0);
  return [mean, half].map((value) => groupDigits(value.toFixed(decimals))).join(" \u00b1 ");
};

/** The figures of the page, as the report wrote them. */
const figures = JSON.parse(document.getElementById("figures").textContent);

/** The name of an axis with its unit. */
const axisTitle = (axis) => (axis.unit ? `${axis.label} (${axis.unit})` : axis.label);

(() => {
  const sortKey = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return cell.textContent;
  };

  // Numbers before texts, so that cells without a value come last whichever way the column is sorted.
  const compare = (a, b, direction) => {
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return direction * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  };

  const sortBy = (table, heading) => {
    const column = heading.cellIndex;
    const direction = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(sortKey(a, column), sortKey(b, column), direction));
    table.tBodies[0].append(...rows);
  };

  const copy = async (button) => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // Files opened from disk may not write to the clipboard: the text is selected instead.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
  };

  const interval = (from, to) => `${formatNumber(from)} \u2013 ${formatNumber(to)}`;

  /** The heading of half the width of confidence intervals. */
  const HALF = "\u00b1 (95 %)";

  /** Headings and rows of a panel; the first of each row names it. */
  const rowsOf = {
    bars: (chart) => [
      [chart.category_label, ...chart.series.map((s) => s.name), ...(chart.intervals ? [`${HALF} of the sum`] : [])],
      chart.categories.map((name, i) => [name, ...chart.series.map((s) => s.values[i]), ...(chart.intervals ? [chart.intervals[i]] : [])]),
    ],
    plane: (chart) => {
      const has = chart.series.some((s) => s.intervals);
      const half = (s, i) => (has ? [s.intervals?.[i] ?? null] : []);
      return [
        ["Series", axisTitle(chart.x), axisTitle(chart.y), ...(has ? [HALF] : [])],
        chart.series.flatMap((s) => s.points.map(([x, y], i) => [s.name, x, y, ...half(s, i)])),
      ];
    },
    histogram: (chart) => [
      ["Series", axisTitle(chart.x), axisTitle(chart.y)],
      chart.series.flatMap((s) => s.values.map((v, i) => [s.name, interval(s.edges[i], s.edges[i + 1]), v])),
    ],
    // Thousands of cells help nobody: the table gives the sum of each row of addresses.
    heat_map: (chart) => [
      [axisTitle(chart.y), axisTitle(chart.value)],
      chart.rows.map((row, i) => {
        const [start, step] = chart.y_start_step;
        return [interval(start + i * step, start + (i + 1) * step), row.reduce((a, b) => a + b, 0)];
      }),
    ],
  };

  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  const numbersTable = (title, chart) => {
    const [headings, rows] = rowsOf[chart.kind](chart);
    const table = element("table");
    if (title) table.append(element("caption", title));
    const head = element("tr");
    head.append(...headings.map((h) => element("th", h, { scope: "col" })));
    table.createTHead().append(head);
    const body = table.createTBody();
    for (const [name, ...values] of rows) {
      const row = element("tr");
      row.append(element("th", name, { scope: "row" }));
      row.append(...values.map((v) => element("td", typeof v === "string" ? v : formatNumber(v))));
      body.append(row);
    }
    const frame = element("div", undefined, { class: "scroll", role: "region", tabindex: "0", "aria-label": title || "Numbers" });
    frame.append(table);
    return frame;
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const heading of table.querySelectorAll("th[scope=col]")) {
      heading.querySelector("button").addEventListener("click", () => sortBy(table, heading));
    }
  }
  for (const button of document.querySelectorAll("button.copy")) button.addEventListener("click", () => copy(button));
  for (const details of document.querySelectorAll("details[data-numbers]")) {
    details.addEventListener("toggle", () => {
      const place = details.querySelector(".numbers");
      if (!details.open || place.childElementCount > 0) return;
      const figure = figures[Number(details.closest("figure").dataset.figure)];
      place.append(...figure.panels.map((panel) => numbersTable(panel.title, panel.chart)));
    });
  }
})();
