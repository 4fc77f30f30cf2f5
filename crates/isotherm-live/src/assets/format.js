// Numbers for people: a unit with each, and as many digits as mean something.

/** Digits before the point in groups of three, parted by a narrow space. */
export const group = (text) => {
  const [whole, fraction] = String(text).split(".");
  const grouped = whole.length > 3 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
};

/** What stands where there is no number. */
export const NONE = "\u2013";

const RAISED = Object.fromEntries([..."-0123456789"].map((c, i) => [c, "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[i]]));

/** About three significant digits, never more than three after the point; with a power of ten what would be nought so. */
export const digits = (value) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size > 0 && size < 0.001) {
    const [digit, power] = value.toExponential(1).split("e");
    return `${digit}\u00a0\u00d7\u00a010${[...power].map((c) => RAISED[c]).join("")}`;
  }
  return group(value.toFixed(size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3));
};

/** A round number, with no more digits than it has. */
export const plain = (value) => group(Number(value.toPrecision(6)));

/** A ratio such as write amplification: two digits after the point, always, so that it does not jump. */
export const ratio = (value) => (value === null ? NONE : value.toFixed(2));

/** The largest unit of which there is at least one. */
const scaled = (value, units, step) => {
  let unit = 0;
  while (unit < units.length - 1 && value >= step) {
    value /= step;
    unit += 1;
  }
  return `${unit === 0 ? group(Math.round(value)) : digits(value)}\u00a0${units[unit]}`;
};

export const latency = (ns) => (ns === null || ns === undefined ? NONE : scaled(ns, ["ns", "\u00b5s", "ms", "s"], 1000));
/** A round latency. */
export const latencyTick = (ns) => latency(ns).replace(/\.0+(?=\D)/, "");
export const size = (bytes) => scaled(bytes, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
export const percent = (share) => `${Math.round(share * 100)}\u00a0%`;
export const megabytes = (bytes) => bytes / 1e6;

/** A value of the source with its kind: `{"share": 0.5}`. */
export const value = (tagged) => {
  const [[kind, raw]] = Object.entries(tagged);
  return { text: String, count: group, number: digits, share: percent, bytes: size }[kind](raw);
};

/** With a capital at the beginning. */
export const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

/** A span of time in words. */
export const span = (ms) => {
  const s = Math.floor(ms / 1000);
  const [h, min] = [Math.floor(s / 3600), Math.floor(s / 60) % 60];
  if (h > 0) return `${h}\u00a0h ${min}\u00a0min`;
  return min > 0 ? `${min}\u00a0min ${s % 60}\u00a0s` : `${s}\u00a0s`;
};

/** The reader's time of day. */
export const clock = (date) => date.toLocaleTimeString("en-GB");
