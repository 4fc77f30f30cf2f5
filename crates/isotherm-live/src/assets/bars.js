// How a share is spread over the units: a bar for each twentieth, as high as the part of the units that have such a share.
import { HEIGHT, MARGIN, linear, svg } from "./chart.js";
import { group, percent, plain } from "./format.js";

export class Bars {
  #root;
  #svg;
  #read;
  #counts = [];
  #words = { many: "units", name: "share" };
  #chosen = null;

  constructor(root) {
    this.#root = root;
    this.#svg = svg("svg", { "aria-hidden": "true" });
    this.#read = document.createElement("p");
    this.#read.className = "read";
    this.#read.setAttribute("aria-live", "polite");
    const frame = document.createElement("div");
    frame.className = "chart";
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.append(this.#svg);
    root.append(frame, this.#read);
    frame.addEventListener("pointermove", (event) => this.#choose(this.#barAt(event.clientX)));
    frame.addEventListener("pointerleave", () => this.#choose(null));
    frame.addEventListener("blur", () => this.#choose(null));
    frame.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(frame);
  }

  /** `many` are the units, `name` is what they have a share of. */
  about(many, name) {
    this.#words = { many, name };
    this.#root.firstChild.setAttribute("aria-label", `${many} by ${name}: a histogram; arrow keys choose a bar, Escape lets it go`);
  }

  update(counts) {
    this.#counts = counts;
    this.#draw();
  }

  #key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key === "Escape") this.#choose(null);
    else if (event.key in steps && this.#counts.length > 0) {
      const next = this.#chosen === null ? 0 : this.#chosen + steps[event.key];
      this.#choose(Math.min(this.#counts.length - 1, Math.max(0, next)));
      event.preventDefault();
    }
  }

  #choose(bar) {
    if (bar === this.#chosen) return;
    this.#chosen = bar;
    this.#draw();
  }

  #barAt(clientX) {
    const box = this.#svg.getBoundingClientRect();
    const bar = Math.floor(((clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right)) * this.#counts.length);
    return bar >= 0 && bar < this.#counts.length ? bar : null;
  }

  #draw() {
    const width = this.#root.clientWidth;
    if (width === 0 || this.#counts.length === 0) return;
    const total = this.#counts.reduce((sum, count) => sum + count, 0);
    const shares = this.#counts.map((count) => (total > 0 ? count / total : 0));
    const scale = linear(shares, 0.1);
    const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
    const x = (share) => MARGIN.left + share * inner.width;
    const y = (share) => MARGIN.top + (1 - scale.at(share)) * inner.height;
    const lines = scale.ticks.map((tick) => svg("line", { x1: x(0), x2: x(1), y1: y(tick), y2: y(tick), class: "grid" }));
    const texts = scale.ticks.map((tick) => svg("text", { x: x(0) - 6, y: y(tick) + 4, "text-anchor": "end" }, `${plain(tick * 100)}\u00a0%`));
    const below = [0, 0.25, 0.5, 0.75, 1].map((tick) =>
      svg("text", { x: x(tick), y: HEIGHT - 4, "text-anchor": tick === 0 ? "start" : tick === 1 ? "end" : "middle" }, percent(tick)));
    const part = inner.width / shares.length;
    const bars = shares.map((share, i) => svg("rect", {
      x: x(i / shares.length) + 1, y: y(share), width: Math.max(1, part - 2), height: y(0) - y(share),
      class: i === this.#chosen ? "bar chosen" : "bar", "data-count": this.#counts[i],
    }));
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.#svg.replaceChildren(...lines, ...texts, ...below, ...bars);
    this.#say(total, shares);
  }

  #say(total, shares) {
    const { many, name } = this.#words;
    const at = this.#chosen;
    const words = at === null
      ? `${group(total)} ${many} that hold data`
      : `${percent(at / shares.length)} to ${percent((at + 1) / shares.length)} ${name}: ${group(this.#counts[at])} ${many}, ${percent(shares[at])}`;
    if (this.#read.textContent !== words) this.#read.textContent = words;
  }
}
