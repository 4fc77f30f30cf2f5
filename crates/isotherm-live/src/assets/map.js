// The map: a cell for each unit (a block, a segment), or for several, on a canvas. A second canvas above it holds what moves: victims, and the
// cell that is pointed at.
import { digits, group, percent, sentence } from "./format.js";
import { svg } from "./chart.js";

const [FREE, OPEN, CLOSED, BAD] = [0, 1, 2, 3];
/** Colours of open and closed units where states are coloured. */
const STATE_SLOT = { [OPEN]: 1, [CLOSED]: 0 };
const HEIGHT_PX = 400;
const [LEAST_SIDE, MOST_SIDE] = [2, 20];
/** From this side on cells have gaps and shapes; below it they are too small for either. */
const SHAPED_SIDE = 5;
const FLASH_MS = 1500;
const MOST_FLASHES = 24;
const SHADES = 64;

/** `SHADES` colours between those of the style sheet's ramp. */
const ramp = (colours) => {
  const rgb = colours.map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
  return Array.from({ length: SHADES }, (_, i) => {
    const at = (i / (SHADES - 1)) * (rgb.length - 1);
    const low = Math.min(rgb.length - 2, Math.floor(at));
    return `rgb(${rgb[low].map((c, k) => Math.round(c + (rgb[low + 1][k] - c) * (at - low))).join()})`;
  });
};

export class BlockMap {
  #root;
  #read;
  #legend;
  #scale;
  #cells = null;
  #words = { one: "unit", many: "units", states: ["free", "open", "closed", "bad"], collected: "collected" };
  #colourings = [];
  /** The colouring in force; null for the states. */
  #colouring = null;
  #side = 0;
  #columns = 1;
  #chosen = null;
  /** Cells of victims, with the moment each was chosen. */
  #flashes = [];
  #frame = 0;

  /** `root` holds two canvases; `read`, `legend` and `scale` take the words beside them. */
  constructor(root, { read, legend, scale }) {
    this.#root = root;
    [this.#read, this.#legend, this.#scale] = [read, legend, scale];
    root.addEventListener("pointermove", (event) => this.#choose(this.#cellAt(event)));
    root.addEventListener("pointerdown", (event) => this.#choose(this.#cellAt(event)));
    root.addEventListener("pointerleave", () => this.#choose(null));
    root.addEventListener("blur", () => this.#choose(null));
    root.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.draw()).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.#say();
  }

  about({ words, colourings }) {
    [this.#words, this.#colourings] = [words, colourings];
    // What came before had other colourings.
    this.#cells = null;
    this.#root.setAttribute("aria-label", `Map of all ${words.many}; arrow keys choose a cell`);
  }

  update(cells) {
    this.#cells = cells;
    this.draw();
  }

  /** By the colouring with this key, or by the states. */
  colourBy(key) {
    this.#colouring = this.#colourings.find((colouring) => colouring.key === key) ?? null;
    this.draw();
  }

  /** Rings the cells of units that were chosen to be collected. */
  flash(units) {
    if (!this.#cells || document.hidden) return;
    const now = performance.now();
    for (const unit of units.slice(-MOST_FLASHES)) {
      this.#flashes.push({ cell: Math.floor(unit / this.#cells.units_per_cell), now });
    }
    this.#animate();
  }

  /** The first colouring that has classes. */
  get classes() {
    return this.#colourings.find(({ scale }) => scale.kind === "classes");
  }

  /** A class of it in words. */
  className(number) {
    return inWords(this.classes, number);
  }

  draw() {
    const width = this.#root.clientWidth;
    if (!this.#cells || width === 0 || document.hidden) return;
    const count = this.#cells.state.length;
    const fitting = Math.floor(Math.sqrt((width * HEIGHT_PX) / Math.max(1, count)));
    this.#side = Math.min(MOST_SIDE, Math.max(LEAST_SIDE, fitting));
    this.#columns = Math.floor(width / this.#side);
    const height = Math.ceil(count / this.#columns) * this.#side;
    for (const canvas of this.#root.children) this.#resize(canvas, width, height);
    this.#paint(this.#root.children[0].getContext("2d"));
    this.#paintMoving();
    this.#drawLegend();
    this.#say();
  }

  #resize(canvas, width, height) {
    const dots = devicePixelRatio;
    const [w, h] = [Math.round(width * dots), Math.round(height * dots)];
    if (canvas.width !== w || canvas.height !== h) {
      [canvas.width, canvas.height] = [w, h];
      [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    }
    const context = canvas.getContext("2d");
    context.setTransform(dots, 0, 0, dots, 0, 0);
    context.clearRect(0, 0, width, height);
  }

  #paint(context) {
    const { state } = this.#cells;
    const side = this.#side;
    const shaped = side >= SHAPED_SIDE;
    const fill = side - (shaped ? 1 : 0);
    const [ink, soft, line] = [colour("ink"), colour("soft"), colour("line")];
    const shade = this.#shade();
    for (let i = 0; i < state.length; i += 1) {
      const [x, y] = this.#corner(i);
      const painted = shade(i);
      if (painted !== null) {
        context.fillStyle = painted;
        context.fillRect(x, y, fill, fill);
      }
      // Free units are hollow, open ones framed, bad ones crossed out: shapes, beside colours.
      if (shaped && state[i] === FREE && painted === null) frame(context, x, y, fill, soft);
      else if (painted === null) fillWith(context, x, y, fill, state[i] === BAD ? ink : line);
      if (state[i] === OPEN) frame(context, x, y, fill, ink);
      if (shaped && state[i] === BAD) cross(context, x, y, fill, colour("paper"));
    }
  }

  /** How the cells are coloured: from a cell to a colour, null for one without. */
  #shade() {
    const { state, numbers } = this.#cells;
    const colouring = this.#colouring;
    if (!colouring || colouring.scale.kind === "classes") {
      const slots = Array.from({ length: 8 }, (_, i) => colour(`s${i}`));
      const slot = colouring ? (i) => numbers[colouring.key][i] % 8 : (i) => STATE_SLOT[state[i]];
      return (i) => (holdsData(state[i]) ? slots[slot(i)] : null);
    }
    const shades = ramp([0, 1, 2, 3].map((i) => colour(`heat${i}`)));
    const pick = (share) => shades[Math.round(Math.min(1, Math.max(0, share)) * (SHADES - 1))];
    const [low, high] = this.#range();
    const measure = colouring.scale.kind === "logarithmic" ? (value) => Math.log(Math.max(low, value)) : (value) => value;
    // Numbers that hardly differ are not made to look different.
    const span = Math.max(measure(high) - measure(low), colouring.scale.kind === "linear" ? high / 20 : 0) || 1;
    return (i) => (this.#has(colouring, i) && state[i] !== BAD ? pick((measure(numbers[colouring.key][i]) - measure(low)) / span) : null);
  }

  /** Whether a cell has the number that a colouring shows. */
  #has(colouring, cell) {
    return colouring.of_all || holdsData(this.#cells.state[cell]);
  }

  /** The least and the greatest number of the colouring in force. */
  #range() {
    const { key, scale } = this.#colouring;
    if (scale.kind === "share") return [0, 1];
    let [low, high] = [Infinity, 0];
    this.#cells.numbers[key].forEach((number, i) => {
      // The logarithm of nought is nowhere.
      if (!this.#has(this.#colouring, i) || (scale.kind === "logarithmic" && number <= 0)) return;
      [low, high] = [Math.min(low, number), Math.max(high, number)];
    });
    return [Math.min(low, high), high];
  }

  #corner(cell) {
    return [(cell % this.#columns) * this.#side, Math.floor(cell / this.#columns) * this.#side];
  }

  #animate() {
    if (this.#frame === 0) {
      this.#frame = requestAnimationFrame(() => {
        this.#frame = 0;
        this.#paintMoving();
        if (this.#flashes.length > 0) this.#animate();
      });
    }
  }

  #paintMoving() {
    const canvas = this.#root.children[1];
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    const now = performance.now();
    this.#flashes = this.#flashes.filter((flash) => now - flash.now < FLASH_MS);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const flash of this.#flashes) {
      context.globalAlpha = still ? 1 : 1 - (now - flash.now) / FLASH_MS;
      this.#ring(context, flash.cell, colour("ink"), 10);
    }
    context.globalAlpha = 1;
    if (this.#chosen !== null) this.#ring(context, this.#chosen, colour("link"), 6);
  }

  #ring(context, cell, stroke, least) {
    const side = Math.max(this.#side + 3, least);
    const size = [this.#columns * this.#side, Math.ceil(this.#cells.state.length / this.#columns) * this.#side];
    // Around the cell, but not beyond the edge of the map.
    const [x, y] = this.#corner(cell).map((at, i) => Math.max(1, Math.min(size[i] - side - 1, at - (side - this.#side) / 2)));
    for (const [style, width] of [[colour("paper"), 4], [stroke, 2]]) {
      [context.strokeStyle, context.lineWidth] = [style, width];
      context.strokeRect(x, y, side, side);
    }
  }

  #cellAt(event) {
    if (!this.#cells) return null;
    const box = this.#root.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.#side);
    const cell = Math.floor((event.clientY - box.top) / this.#side) * this.#columns + column;
    return column < this.#columns && cell >= 0 && cell < this.#cells.state.length ? cell : null;
  }

  #key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.#columns, ArrowDown: this.#columns };
    if (event.key === "Escape") this.#choose(null);
    else if (event.key in steps && this.#cells) {
      const next = this.#chosen === null ? 0 : this.#chosen + steps[event.key];
      this.#choose(Math.min(this.#cells.state.length - 1, Math.max(0, next)));
      event.preventDefault();
    }
  }

  #choose(cell) {
    if (cell === this.#chosen) return;
    this.#chosen = cell;
    this.#paintMoving();
    this.#say();
  }

  /** The chosen cell in words. */
  #say() {
    const words = this.#text();
    // The same words again would be read out again.
    if (this.#read.textContent !== words) this.#read.textContent = words;
  }

  #text() {
    const [cell, cells] = [this.#chosen, this.#cells];
    if (cell === null || !cells || cell >= cells.state.length) {
      return "Point at a cell, or go to the map and use the arrow keys, to read its numbers.";
    }
    const first = cell * cells.units_per_cell;
    const last = Math.min(cells.units, first + cells.units_per_cell) - 1;
    const { one, many, states } = this.#words;
    const name = first === last ? `${one} ${group(first)}` : `${many} ${group(first)} to ${group(last)}, mean`;
    const state = states[cells.state[cell]];
    const parts = [first === last ? state : `most ${state}`];
    for (const colouring of this.#colourings) {
      if (this.#has(colouring, cell)) parts.push(fill(colouring, cells.numbers[colouring.key][cell]));
    }
    return `${sentence(name)}: ${parts.join(", ")}`;
  }

  #drawLegend() {
    const { units, units_per_cell: per, by_state: by } = this.#cells;
    const { many, states, collected } = this.#words;
    this.#scale.textContent = per === 1
      ? `${group(units)} ${many}, a cell each`
      : `${group(units)} ${many}, ${group(per)} in a cell, which shows their mean`;
    const items = this.#colouringLegend();
    for (const state of [FREE, OPEN, CLOSED, BAD].filter((s) => states[s] !== "")) {
      const slot = this.#colouring ? undefined : STATE_SLOT[state];
      const shape = this.#side >= SHAPED_SIDE ? keyShape(state, slot) : keyDot(state, slot);
      items.push(legendItem(shape, `${states[state]}: ${group(by[state])}`));
    }
    const ring = svg("rect", { x: 1, y: 1, width: 10, height: 10, "stroke-width": 2, class: "key" });
    items.push(legendItem(svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, ring), `chosen to be ${collected}`));
    this.#legend.replaceChildren(...items);
  }

  #colouringLegend() {
    const colouring = this.#colouring;
    if (!colouring) return [];
    if (colouring.scale.kind === "classes") {
      const used = new Set(this.#cells.numbers[colouring.key].filter((_, i) => this.#has(colouring, i)));
      return [...used].sort((a, b) => a - b).map((number) => legendItem(keyShape(CLOSED, number % 8), fill(colouring, number)));
    }
    const [low, high] = this.#range();
    const end = (text, means) => (means === "" ? text : `${text}, ${means}`);
    const bar = document.createElement("span");
    bar.className = "ramp";
    return [legendItem(end(fill(colouring, low), colouring.ends[0]), bar, end(inWords(colouring, high), colouring.ends[1]))];
  }
}

const holdsData = (state) => state === OPEN || state === CLOSED;

/** A number of a colouring, with its unit or name. */
const inWords = (colouring, number) => {
  switch (colouring?.scale.kind) {
    case "share": return percent(number);
    case "linear": case "logarithmic": return digits(number);
    default: {
      const name = colouring?.scale.names[number];
      return name ? `${number} (${name})` : String(number);
    }
  }
};

/** What a colouring says of a number. */
const fill = (colouring, number) => colouring.words.replace("{}", () => inWords(colouring, number));

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const fillWith = (context, x, y, side, style) => {
  context.fillStyle = style;
  context.fillRect(x, y, side, side);
};

const frame = (context, x, y, side, style) => {
  [context.strokeStyle, context.lineWidth] = [style, 1];
  context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
};

const cross = (context, x, y, side, style) => {
  [context.strokeStyle, context.lineWidth] = [style, 1];
  context.beginPath();
  context.moveTo(x + 1, y + 1);
  context.lineTo(x + side - 1, y + side - 1);
  context.moveTo(x + side - 1, y + 1);
  context.lineTo(x + 1, y + side - 1);
  context.stroke();
};

/** A unit of a state as the map draws it where cells are too small for shapes. */
const keyDot = (state, slot) => {
  const rect = svg("rect", { x: 0, y: 0, width: 12, height: 12, class: state === FREE ? "key free" : "key full" });
  return svg("svg", { width: 12, height: 12, class: slot === undefined ? "" : `s${slot}`, "aria-hidden": "true" }, rect);
};

/** A unit of a state as the map draws it. */
const keyShape = (state, slot) => {
  const box = { x: 0.5, y: 0.5, width: 11, height: 11 };
  const shapes = {
    [FREE]: () => [svg("rect", { ...box, class: "key" })],
    [OPEN]: () => [svg("rect", { ...box, class: slot === undefined ? "key" : "key full" }), svg("rect", { x: 3.5, y: 3.5, width: 5, height: 5, class: "key full" })],
    [CLOSED]: () => [svg("rect", { ...box, class: "key full" })],
    [BAD]: () => [svg("rect", { ...box, class: "key" }), svg("path", { d: "M1 1L11 11M11 1L1 11", class: "key" })],
  };
  const place = slot === undefined ? "" : `s${slot}`;
  return svg("svg", { width: 12, height: 12, class: place, "aria-hidden": "true" }, ...shapes[state]());
};

const legendItem = (...parts) => {
  const item = document.createElement("span");
  item.append(...parts);
  return item;
};
