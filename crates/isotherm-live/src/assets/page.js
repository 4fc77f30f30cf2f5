// The page: what comes from the server is put where it is read.
import { BlockMap } from "./map.js";
import { Chart } from "./chart.js";
import { History, amplificationBetween } from "./history.js";
import { connect } from "./connection.js";
import * as format from "./format.js";

/** What "recent" means on this page, for ratios and for rates. */
const RATIO_MS = 10_000;
const RATE_MS = 2_000;

const at = (id) => document.getElementById(id);
const make = (name, text = "", attributes = {}) => {
  const element = document.createElement(name);
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

const history = new History();
let unit = { one: "block", many: "blocks", erases: "erases" };
const map = new BlockMap(at("map"), { read: at("map-read"), legend: at("map-legend"), scale: at("map-scale") });
const charts = {
  wa: new Chart(at("wa-chart"), { title: "Write amplification by cause", stacked: true, least: 1, total: "total", format: format.ratio }),
  rate: new Chart(at("rate-chart"), { title: "Throughput in MB/s", least: 1, format: (v) => `${format.digits(v)}\u00a0MB/s` }),
  free: new Chart(at("free-chart"), { title: "Free blocks", least: 4, format: format.group }),
  p99: new Chart(at("p99-chart"), { title: "P99 latency", scale: "logarithmic", format: format.latency, tick: format.latencyTick }),
};

/** A number with its unit in small type, and the raw one for programs. */
const show = (element, value, text, unitText = "") => {
  element.dataset.value = value ?? "";
  element.replaceChildren(text, ...(unitText && value !== null ? [make("small", `\u00a0${unitText}`)] : []));
};

const drawTiles = () => {
  const last = history.last;
  const index = history.samples.length - 1;
  const recent = history.amplification(index, RATIO_MS)?.total ?? null;
  const total = amplificationBetween(null, last)?.total ?? null;
  show(at("wa-recent"), recent, format.ratio(recent));
  show(at("wa-total"), total, format.ratio(total));
  for (const [id, counter] of [["rate-host", "host_bytes_written"], ["rate-media", "media_bytes_written"], ["rate-read", "host_bytes_read"]]) {
    const rate = history.rate(index, RATE_MS, counter);
    show(at(id), rate, rate === null ? format.NONE : format.digits(format.megabytes(rate)), "MB/s");
  }
  show(at("free"), last.free_blocks, format.group(last.free_blocks), `floor ${format.group(last.floor_blocks)}`);
  at("serving").textContent = `\u00b7 serving for ${format.span(last.time_ms)}`;
};

const drawCharts = () => {
  const times = history.map((sample) => sample.time_ms);
  const causes = history.last.pages_programmed.map(([name, count], slot) => ({ name, count, slot })).filter((c) => c.count > 0);
  const amplification = history.map((_, i) => history.amplification(i, RATIO_MS));
  charts.wa.update(times, causes.map(({ name, slot }) => ({
    name: format.words(name), slot, values: amplification.map((a) => (a ? a.byCause.get(name) ?? 0 : null)),
  })));
  const rate = (counter) => history.map((_, i) => {
    const bytes = history.rate(i, RATE_MS, counter);
    return bytes === null ? null : format.megabytes(bytes);
  });
  charts.rate.update(times, [
    { name: "host writes", slot: 0, values: rate("host_bytes_written") },
    { name: "flash writes", slot: 1, values: rate("media_bytes_written") },
    { name: "host reads", slot: 2, values: rate("host_bytes_read") },
  ]);
  charts.free.update(times, [
    { name: `free ${unit.many}`, slot: 0, values: history.map((s) => s.free_blocks) },
    { name: "floor", slot: 1, values: history.map((s) => s.floor_blocks) },
  ]);
  const operations = history.last.latencies.map((row) => row.op);
  charts.p99.update(times, operations.map((op, slot) => ({
    name: op, slot, values: history.map((s) => s.latencies.find((row) => row.op === op)?.recent_p99_ns ?? null),
  })).filter((series) => series.values.some((v) => v !== null)));
};

/** A table whose first column names the row. `columns` are pairs of a heading and whether it holds text. */
const drawTable = (place, label, columns, rows, none) => {
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

const ago = (time) => `${format.span(Math.max(0, history.last.time_ms - time))} ago`;

const drawTables = () => {
  const { latencies, slowest = [], victims = [] } = history.last;
  const time = (row, keys) => keys.map((key) => (row.count > 0 ? [format.latency(row[key]), row[key]] : [format.NONE]));
  drawTable(at("latencies"), "Latencies since start",
    [["request", true], ["requests"], ["P50"], ["P90"], ["P99"], ["P99.9"], ["longest"]],
    latencies.map((row) => [[row.op], [format.group(row.count), row.count], ...time(row, ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"])]),
    "No request has ended yet.");
  drawTable(at("slowest"), "Slowest recent requests",
    [["request", true], ["took"], ["ended"], ["at byte"], ["length"], ["delayed by", true]],
    slowest.map((s) => [[s.op], [format.latency(s.latency_ns), s.latency_ns], [ago(s.time_ms)], [format.group(s.offset), s.offset],
      [format.size(s.length), s.length], [s.delayed_by || "nothing"]]),
    "No request has been slow so far.");
  drawTable(at("victims"), `${unit.many} that were collected last`,
    [[unit.one, true], ["valid pages moved"], ["when"], ["stream", true]],
    victims.slice(-8).reverse().map((v) => [[`${unit.one} ${format.group(v.block)}`], [format.percent(v.valid_share), v.valid_share], [ago(v.time_ms)],
      [map.streamName(v.stream)]]),
    "Nothing has been collected yet.");
};

const draw = () => {
  if (!history.last || document.hidden) return;
  drawTiles();
  drawCharts();
  drawTables();
};

const victimKey = (victim) => `${victim.time_ms}/${victim.block}`;
/** Victims of the sample before, so that each is shown once; null before the first sample. */
let seen = null;
const flashNew = (victims = []) => {
  if (seen) map.flash(victims.filter((v) => !seen.has(victimKey(v))).map((v) => v.block));
  seen = new Set(victims.map(victimKey));
};

const showAbout = (about) => {
  unit = about.unit;
  document.title = `${about.title} \u00b7 isotherm`;
  at("title").textContent = about.title;
  at("facts").replaceChildren(...about.facts.map(({ name, value }) => {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", value));
    return pair;
  }));
  const capital = `${unit.one[0].toUpperCase()}${unit.one.slice(1)}`;
  at("map-title").textContent = `${capital} map`;
  for (const id of ["free-label", "free-title"]) at(id).textContent = `Free ${unit.many}`;
  at("free-note").textContent = `Collection begins when free ${unit.many} are down to the floor.`;
  map.about(about);
};

const showState = (state, since) => {
  const when = since ? ` since ${format.clock(since)}` : "";
  const lost = since ? " What you see is what came last." : "";
  const words = {
    live: ["live", ""],
    lost: [`disconnected${when}`, `Disconnected${when}.${lost} Trying again.`],
    silent: [`no news${when}`, `Nothing has come${when}, though the connection stands.${lost}`],
  };
  const [status, notice] = words[state];
  at("status").dataset.state = state === "live" ? "live" : "lost";
  at("status").textContent = status;
  at("lost").textContent = notice;
  at("lost").hidden = notice === "";
};

for (const input of document.querySelectorAll("input[name=colour]")) {
  input.addEventListener("change", () => map.colourBy(input.value));
  // Browsers keep a choice over a reload.
  if (input.checked) map.colourBy(input.value);
}
document.addEventListener("visibilitychange", () => {
  draw();
  map.draw();
});
connect({
  about: showAbout,
  history: (samples) => {
    history.restart(samples);
    seen = null;
    draw();
  },
  sample: (sample) => {
    history.add(sample);
    flashNew(sample.victims);
    draw();
  },
  cells: (cells) => map.update(cells),
  state: showState,
});
