// The page: what comes from the server is put where it is read.
import { Bars } from "./bars.js";
import { BlockMap } from "./map.js";
import { Chart, before, showAsLive } from "./chart.js";
import { History, amplificationBetween } from "./history.js";
import { Tiles, drawTable, drawTables, make } from "./tables.js";
import { connect } from "./connection.js";
import * as format from "./format.js";

/** What "recent" means on this page, for ratios and for rates. */
const RATIO_MS = 10_000;
const RATE_MS = 2_000;

const at = (id) => document.getElementById(id);

const history = new History();
/** Whether news come. */
let live = true;
/** What the source calls things; nothing is drawn before it has said so. */
let words = null;
/** The first colouring that is a share, whose spread is drawn. */
let share = null;
const map = new BlockMap(at("map"), { read: at("map-read"), legend: at("map-legend"), scale: at("map-scale") });
const tiles = new Tiles(at("tiles"));
const bars = new Bars(at("spread-chart"));
const charts = {
  wa: new Chart(at("wa-chart"), { title: "Write amplification by cause", stacked: true, least: 1, total: "total", format: format.ratio }),
  rate: new Chart(at("rate-chart"), { title: "Throughput in MB/s", least: 1, format: (v) => `${format.digits(v)}\u00a0MB/s` }),
  free: new Chart(at("free-chart"), { title: "Free", least: 4, format: format.group }),
  ratio: new Chart(at("ratio-chart"), { title: "Costs", least: 1, format: format.ratio }),
  event: new Chart(at("event-chart"), { title: "Activity", least: 1, format: (v) => `${format.digits(v)}\u00a0a\u00a0second` }),
  p99: new Chart(at("p99-chart"), { title: "P99 latency", scale: "logarithmic", format: format.latency, tick: format.latencyTick }),
};

const drawTiles = () => {
  const last = history.last;
  const index = history.samples.length - 1;
  const recent = history.amplification(index, RATIO_MS)?.total ?? null;
  const total = amplificationBetween(null, last)?.total ?? null;
  tiles.show("wa-recent", "Write amplification, last 10\u00a0s", recent, format.ratio(recent));
  tiles.show("wa-total", "Write amplification, since start", total, format.ratio(total));
  ratiosOf(last).forEach(({ name }, place) => {
    const value = history.ratio(index, RATIO_MS, place);
    tiles.show(`ratio/${name}`, format.sentence(name), value, format.ratio(value));
  });
  last.bytes.forEach(([name], place) => {
    const rate = history.rate(index, RATE_MS, "bytes", place);
    tiles.show(`rate/${name}`, format.sentence(name), rate, rate === null ? format.NONE : format.digits(format.megabytes(rate)), "MB/s");
  });
  const [first] = last.thresholds;
  tiles.show("free", `Free ${words.many}`, last.free_units, format.group(last.free_units), first ? `${first.name} ${format.group(first.units)}` : "");
  for (const { name, value } of last.figures ?? []) tiles.show(`figure/${name}`, format.sentence(name), Object.values(value)[0], format.value(value));
  at("serving").textContent = `\u00b7 ${live ? "serving" : "served"} for ${format.span(last.time_ms)}`;
};

const ratiosOf = (sample) => sample.ratios ?? [];
const eventsOf = (sample) => sample.events ?? [];

const drawCharts = () => {
  const { last } = history;
  const times = history.map((sample) => sample.time_ms);
  const causes = last.pages_written.map(([name, count], slot) => ({ name, count, slot })).filter((c) => c.count > 0);
  const amplification = history.map((_, i) => history.amplification(i, RATIO_MS));
  charts.wa.update(times, causes.map(({ name, slot }) => ({
    name, slot, values: amplification.map((a) => (a ? a.byCause.get(name) ?? 0 : null)),
  })));
  charts.rate.update(times, last.bytes.map(([name], slot) => ({
    name, slot, values: history.map((_, i) => {
      const bytes = history.rate(i, RATE_MS, "bytes", slot);
      return bytes === null ? null : format.megabytes(bytes);
    }),
  })));
  charts.free.update(times, [
    { name: `free ${words.many}`, slot: 0, values: history.map((s) => s.free_units) },
    ...last.thresholds.map(({ name }, i) => ({ name, slot: i + 1, values: history.map((s) => s.thresholds[i].units) })),
  ]);
  at("ratio").hidden = ratiosOf(last).length === 0;
  charts.ratio.update(times, ratiosOf(last).map(({ name }, slot) => ({
    name, slot, values: history.map((_, i) => history.ratio(i, RATIO_MS, slot)),
  })));
  at("event").hidden = eventsOf(last).length === 0;
  charts.event.update(times, eventsOf(last).map(([name], slot) => ({
    name, slot, values: history.map((_, i) => history.rate(i, RATIO_MS, "events", slot)),
  })));
  const operations = last.latencies.map((row) => row.op);
  charts.p99.update(times, operations.map((op, slot) => ({
    name: op, slot, values: history.map((s) => s.latencies.find((row) => row.op === op)?.recent_p99_ns ?? null),
  })).filter((series) => series.values.some((v) => v !== null)));
};

const ago = (time) => before(format.span(Math.max(0, history.last.time_ms - time)));

const drawLists = () => {
  const { latencies, slowest = [], victims = [], tables = [] } = history.last;
  const time = (row, keys) => keys.map((key) => (row.count > 0 ? [format.latency(row[key]), row[key]] : [format.NONE]));
  drawTables(at("tables"), tables);
  drawTable(at("latencies"), "Latencies since start",
    [["request", true], ["requests"], ["P50"], ["P90"], ["P99"], ["P99.9"], ["longest"]],
    latencies.map((row) => [[row.op], [format.group(row.count), row.count], ...time(row, ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"])]),
    "No request has ended yet.");
  drawTable(at("slowest"), "Slowest recent requests",
    [["request", true], ["took"], ["ended"], ["at byte"], ["length"], ["delayed by", true]],
    slowest.map((s) => [[s.op], [format.latency(s.latency_ns), s.latency_ns], [ago(s.time_ms)], [format.group(s.offset), s.offset],
      [format.size(s.length), s.length], [s.delayed_by || "its own work alone"]]),
    "No request has been slow so far.");
  drawTable(at("victims"), `${words.many} that were ${words.collected} last`,
    [[words.one, true], [words.moved], ["when"], [map.classes?.name ?? "class", true]],
    victims.slice(-8).reverse().map((v) => [[`${words.one} ${format.group(v.unit)}`], [format.percent(v.valid_share), v.valid_share], [ago(v.time_ms)],
      [map.className(v.class)]]),
    `Nothing has been ${words.collected} yet.`);
};

const draw = () => {
  if (!history.last || !words || document.hidden) return;
  drawTiles();
  drawCharts();
  drawLists();
  const { failure = "" } = history.last;
  at("failure").textContent = failure;
  at("failure").hidden = failure === "";
};

const victimKey = (victim) => `${victim.time_ms}/${victim.unit}`;
/** Victims of the sample before, so that each is shown once; null before the first sample. */
let seen = null;
const flashNew = (victims = []) => {
  if (seen) map.flash(victims.filter((v) => !seen.has(victimKey(v))).map((v) => v.unit));
  seen = new Set(victims.map(victimKey));
};

/** A button for each way of colouring. The one that was chosen stays chosen if the source still has it. */
const showChoice = (colourings) => {
  const before = document.querySelector("input[name=colour]:checked")?.value;
  const ways = [...colourings.map(({ key, name }) => [key, name]), ["state", "state"]];
  const chosen = ways.some(([key]) => key === before) ? before : ways[0][0];
  const labels = ways.map(([key, name]) => {
    const input = make("input", "", { type: "radio", name: "colour", value: key });
    input.checked = key === chosen;
    input.addEventListener("change", () => map.colourBy(key));
    const label = make("label");
    label.append(input, make("span", name));
    return label;
  });
  at("map-choice").replaceChildren(at("map-choice").firstElementChild, ...labels);
  map.colourBy(chosen);
};

const showAbout = (about) => {
  words = about.words;
  document.title = `${about.title} \u00b7 isotherm`;
  at("title").textContent = about.title;
  at("facts").replaceChildren(...about.facts.map(({ name, value }) => {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", value));
    return pair;
  }));
  at("map-title").textContent = `${format.sentence(words.one)} map`;
  at("wa-note").textContent = `${words.amplification}, over the 10\u00a0s before.`;
  at("ratio-note").textContent = `${words.ratios}, over the 10\u00a0s before.`;
  at("free-title").textContent = `Free ${words.many}`;
  at("free-note").textContent = words.thresholds;
  for (const note of document.querySelectorAll(".latency-note")) note.textContent = words.latencies;
  at("victims-title").textContent = `Last ${words.collected}`;
  for (const section of document.querySelectorAll(".of-latencies")) section.hidden = !about.has_latencies;
  share = about.colourings.find(({ scale }) => scale.kind === "share");
  at("spread").hidden = !share;
  if (share) {
    at("spread-title").textContent = `${format.sentence(words.many)} by ${share.name}`;
    at("spread-note").textContent = `Share of the ${words.many} that hold data.`;
    bars.about(words.many, share.name);
  }
  map.about(about);
  // Another source behind the same address has other tiles and tables.
  tiles.clear();
  at("tables").replaceChildren();
  showChoice(about.colourings);
};

const showState = (state, since) => {
  const when = since ? ` since ${format.clock(since)}` : "";
  const lost = since ? " What you see is what came last." : "";
  const texts = {
    live: ["live", ""],
    lost: [`disconnected${when}`, `Disconnected${when}.${lost} Trying again.`],
    silent: [`no news${when}`, `Nothing has come${when}, though the connection stands.${lost}`],
  };
  const [status, notice] = texts[state];
  live = state === "live";
  showAsLive(live);
  draw();
  at("status").dataset.state = state === "live" ? "live" : "lost";
  at("status").textContent = status;
  at("lost").textContent = notice;
  at("lost").hidden = notice === "";
};

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
  cells: (cells) => {
    map.update(cells);
    if (share) bars.update(cells.spreads[share.key]);
  },
  state: showState,
});
