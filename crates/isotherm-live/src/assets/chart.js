// Curves and stacked areas over time, in SVG. Colours and type come from the style sheet, so light and dark need no code. Values
// stand in the legend: of the last moment, or of the moment that the pointer or the arrow keys choose.
import { NONE, digits, plain } from "./format.js";

const NS = "http://www.w3.org/2000/svg";
export const HEIGHT = 192;
export const MARGIN = { top: 8, right: 4, bottom: 20, left: 44 };
/** Curves differ by their dashes too, not by colour alone. */
const DASHES = ["none", "7 3", "2 4", "9 3 2 3", "4 3", "1 3", "12 4", "6 2 2 2"];
const LEAST_SPAN_MS = 30_000;
const LEAST_BAND_PX = 15;

/** Whether what came last is of now; of a source that is gone, it is of the last moment that is known. */
let live = true;
export const showAsLive = (is) => {
  live = is;
};
/** A moment so long before the last one. */
export const before = (span) => `${span} ${live ? "ago" : "before"}`;
const lastMoment = () => (live ? "now" : "last");

export const svg = (name, attributes, ...children) => {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

/** A sample of a curve or band, for legends. */
const swatch = (series, stacked) =>
  svg("svg", { width: 22, height: 10, class: `s${series.slot % 8}`, "aria-hidden": "true" },
    stacked ? svg("rect", { width: 22, height: 10, rx: 2, class: "area" })
      : svg("path", { d: "M1 5h20", class: "curve", "stroke-dasharray": DASHES[series.slot % 8] }));

/** The least round step that parts `most` into at most `wanted` pieces. */
const roundStep = (most, wanted) => {
  const power = 10 ** Math.floor(Math.log10(most / wanted));
  return [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m * wanted >= most * (1 - 1e-9));
};

/** A scale from nought to at least `least`, with its ticks. */
export const linear = (values, least) => {
  const most = Math.max(least, ...values);
  const step = roundStep(most, 4);
  const top = Math.ceil(most / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step);
  return { at: (value) => value / top, ticks };
};

const logarithmic = (values) => {
  const positive = values.filter((v) => v > 0);
  if (positive.length === 0) return { at: () => 0, ticks: [] };
  const low = Math.floor(Math.log10(Math.min(...positive)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...positive)) - 1e-9));
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  return { at: (value) => Math.max(0, (Math.log10(value) - low) / (high - low)), ticks };
};

export class Chart {
  #root;
  #options;
  #svg;
  #legend;
  /** Says the values that the keyboard chose to those who hear the page. */
  #said;
  #data = { times: [], series: [] };
  /** The index of the moment that is pointed at; null for the last. */
  #chosen = null;
  #width = 0;

  /**
   * `title` names it for those who cannot see it. `stacked` draws bands on top of each other in place of curves, with `total`
   * naming their sum; `scale` is "linear" (from nought to at least `least`) or "logarithmic"; `format` and `tick` write values.
   */
  constructor(root, options) {
    this.#root = root;
    this.#options = { stacked: false, scale: "linear", least: 1, format: digits, tick: plain, ...options };
    this.#svg = svg("svg", { "aria-hidden": "true" });
    this.#legend = document.createElement("ul");
    this.#legend.className = "legend";
    const frame = document.createElement("div");
    frame.className = "chart";
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", `${options.title}: a chart over time; arrow keys choose a moment, Escape goes back to the last`);
    frame.append(this.#svg);
    this.#said = document.createElement("p");
    this.#said.className = "unseen";
    this.#said.setAttribute("aria-live", "polite");
    root.append(frame, this.#legend, this.#said);
    frame.addEventListener("pointermove", (event) => this.#choose(this.#indexAt(event.clientX)));
    frame.addEventListener("pointerleave", () => this.#choose(null));
    frame.addEventListener("blur", () => this.#choose(null));
    frame.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(frame);
  }

  /** `times` in ms, ascending; each of `series` has a name, a slot of the palette, and values, null where there is none. */
  update(times, series) {
    // What is pointed at stays under the pointer, and so does its time.
    if (this.#chosen !== null) {
      const time = this.#data.times[this.#chosen];
      const at = times.findIndex((t) => t >= time);
      this.#chosen = at < 0 ? null : at;
    }
    this.#data = { times, series };
    this.#draw();
  }

  #key(event) {
    const last = this.#data.times.length - 1;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 };
    if (event.key === "Escape") this.#choose(null);
    else if (event.key in steps && last >= 0) {
      const next = (this.#chosen ?? last) + steps[event.key];
      this.#choose(next >= last ? null : Math.max(0, next));
      this.#said.textContent = [...this.#legend.children].map((item) => item.textContent).join(", ");
      event.preventDefault();
    }
  }

  #choose(index) {
    if (index === this.#chosen) return;
    this.#chosen = index;
    this.#draw();
  }

  #range() {
    const { times } = this.#data;
    const end = times.at(-1) ?? 0;
    return [Math.min(times[0] ?? 0, end - LEAST_SPAN_MS), end];
  }

  #indexAt(clientX) {
    const box = this.#svg.getBoundingClientRect();
    const [start, end] = this.#range();
    const inner = box.width - MARGIN.left - MARGIN.right;
    const time = start + ((clientX - box.left - MARGIN.left) / inner) * (end - start);
    const { times } = this.#data;
    if (times.length === 0 || time < times[0]) return null;
    let best = 0;
    times.forEach((t, i) => {
      if (Math.abs(t - time) < Math.abs(times[best] - time)) best = i;
    });
    return best;
  }

  #draw() {
    this.#width = this.#root.clientWidth;
    if (this.#width === 0) return;
    const { times, series } = this.#data;
    const { stacked, scale } = this.#options;
    const bands = stacked ? stack(series, times.length) : series.map((s) => s.values.map((v) => (v === null ? null : [0, v])));
    const tops = bands.flatMap((band) => band.map((b) => b?.[1])).filter((v) => v !== null && v !== undefined);
    const y = scale === "logarithmic" ? logarithmic(tops) : linear(tops, this.#options.least);
    const [start, end] = this.#range();
    const inner = { width: this.#width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
    const place = {
      x: (time) => MARGIN.left + ((time - start) / (end - start)) * inner.width,
      y: (value) => MARGIN.top + (1 - y.at(value)) * inner.height,
    };
    const shapes = series.map((s, i) => this.#shape(s, bands[i], place));
    const labels = stacked ? series.map((s, i) => this.#bandLabel(s, bands[i], place)).filter(Boolean) : [];
    this.#svg.setAttribute("viewBox", `0 0 ${this.#width} ${HEIGHT}`);
    this.#svg.replaceChildren(...this.#axes(y.ticks, start, end, place), ...shapes, ...labels, ...this.#cursor(place));
    this.#drawLegend();
  }

  #axes(ticks, start, end, place) {
    const right = this.#width - MARGIN.right;
    const lines = ticks.map((tick) => svg("line", { x1: MARGIN.left, x2: right, y1: place.y(tick), y2: place.y(tick), class: "grid" }));
    const texts = ticks.map((tick) => svg("text", { x: MARGIN.left - 6, y: place.y(tick) + 4, "text-anchor": "end" }, this.#options.tick(tick)));
    const step = [5, 10, 15, 30, 60, 120].find((s) => (end - start) / 1000 / s <= this.#width / 90) ?? 300;
    const times = [];
    for (let ago = 0; ago * 1000 <= end - start; ago += step) {
      const label = ago === 0 ? lastMoment() : step % 60 === 0 ? `\u2212${ago / 60} min` : `\u2212${ago} s`;
      const x = place.x(end - ago * 1000);
      const anchor = ago === 0 ? "end" : x < MARGIN.left + 14 ? "start" : "middle";
      times.push(svg("text", { x, y: HEIGHT - 4, "text-anchor": anchor }, label));
    }
    return [...lines, ...texts, ...times];
  }

  #shape(series, band, place) {
    const { times } = this.#data;
    const group = svg("g", { class: `s${series.slot % 8}`, "data-series": series.name });
    const path = runs(band).map(([from, to]) => {
      const xs = times.slice(from, to).map(place.x);
      const points = (edge) => xs.map((x, i) => `${x.toFixed(1)} ${place.y(band[from + i][edge]).toFixed(1)}`);
      if (this.#options.stacked) return `M${[...points(1), ...points(0).reverse()].join("L")}Z`;
      // A run of one sample is a dot.
      return to - from === 1 ? `M${points(1)[0]}h.01` : `M${points(1).join("L")}`;
    });
    const dash = this.#options.stacked ? {} : { "stroke-dasharray": DASHES[series.slot % 8] };
    group.append(svg("path", { d: path.join(""), class: this.#options.stacked ? "area" : "curve", ...dash }));
    return group;
  }

  /** The name of a band where it is thick enough at its end. */
  #bandLabel(series, band, place) {
    const last = band.at(-1);
    if (!last) return null;
    const [bottom, top] = last.map(place.y);
    if (bottom - top < LEAST_BAND_PX) return null;
    return svg("text", { x: this.#width - MARGIN.right - 6, y: (bottom + top) / 2 + 4, "text-anchor": "end", class: "band" }, series.name);
  }

  #cursor(place) {
    if (this.#chosen === null) return [];
    const x = place.x(this.#data.times[this.#chosen]);
    return [svg("line", { x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom, class: "cursor" })];
  }

  #drawLegend() {
    const { times, series } = this.#data;
    const { format, stacked, total } = this.#options;
    const at = this.#chosen ?? times.length - 1;
    const item = (name, value, ...before) => {
      const li = document.createElement("li");
      const b = document.createElement("b");
      b.textContent = value === null || value === undefined ? NONE : format(value);
      b.dataset.value = value ?? "";
      li.append(...before, `${name} `, b);
      return li;
    };
    const items = series.map((s) => item(s.name, s.values[at], swatch(s, stacked)));
    if (total) {
      const values = series.map((s) => s.values[at]);
      items.push(item(total, values.every((v) => v === null) ? null : values.reduce((sum, v) => sum + v, 0)));
    }
    // First, because that is what the values are read with.
    const when = document.createElement("li");
    when.className = "when";
    const ago = ((times.at(-1) - times[at]) / 1000).toFixed(1);
    when.textContent = this.#chosen === null ? lastMoment() : before(`${ago}\u00a0s`);
    this.#legend.replaceChildren(when, ...items);
  }
}

/** Lower and upper edge of each band at each sample, from the first series up; null where there is no value. */
const stack = (series, length) => {
  const tops = new Array(length).fill(0);
  return series.map((s) => s.values.map((value, i) => {
    if (value === null) return null;
    const bottom = tops[i];
    tops[i] += value;
    return [bottom, tops[i]];
  }));
};

/** Where values stand without a gap: pairs of first index and end. */
const runs = (band) => {
  const found = [];
  band.forEach((value, i) => {
    if (value === null) return;
    if (i > 0 && band[i - 1] !== null) found.at(-1)[1] = i + 1;
    else found.push([i, i + 1]);
  });
  return found;
};
