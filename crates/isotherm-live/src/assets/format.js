// Numbers for people: a unit with each, and as many digits as mean something.

/** Digits before the point in groups of three, parted by a narrow space. */
export const group = (text) => {
  const [whole, fraction] = String(text).split(".");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
};

/** What stands where there is no number. */
export const NONE = "\u2013";

/** About three significant digits, never more than three after the point. */
export const digits = (value) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
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

/** A span of time in words. */
export const span = (ms) => {
  const s = Math.floor(ms / 1000);
  const [h, min] = [Math.floor(s / 3600), Math.floor(s / 60) % 60];
  if (h > 0) return `${h}\u00a0h ${min}\u00a0min`;
  return min > 0 ? `${min}\u00a0min ${s % 60}\u00a0s` : `${s}\u00a0s`;
};

/** The reader's time of day. */
export const clock = (date) => date.toLocaleTimeString("en-GB");

/** A key such as `translation_gc` as words. */
export const words = (key) => key.replaceAll("_", " ");
