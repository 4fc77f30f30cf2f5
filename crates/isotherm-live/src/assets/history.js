// The samples of the last minutes, and what is worked out of them: counters only grow, so everything that is shown as a rate or
// a ratio is the difference of two samples.

const MOST = 600;

export class History {
  samples = [];

  restart(samples) {
    this.samples = samples.slice(-MOST);
  }

  add(sample) {
    const last = this.last;
    // Time that runs backwards is another drive behind the same address.
    if (last && sample.time_ms < last.time_ms) this.samples = [];
    this.samples.push(sample);
    if (this.samples.length > MOST) this.samples.shift();
  }

  get last() {
    return this.samples.at(-1);
  }

  /** The sample that lies `ms` before the one at `index`, or the earliest there is. */
  before(index, ms) {
    const wanted = this.samples[index].time_ms - ms;
    let at = index;
    while (at > 0 && this.samples[at].time_ms > wanted) at -= 1;
    return this.samples[at];
  }

  /** Pages written for each page that was wanted over the `ms` before, in all and by cause; null where none was wanted. */
  amplification(index, ms) {
    return amplificationBetween(this.before(index, ms), this.samples[index]);
  }

  /** The ratio at this place of the source's list over the `ms` before; null where a divisor did not grow. */
  ratio(index, ms, place) {
    return ratioBetween(this.before(index, ms), this.samples[index], place);
  }

  /** How fast the counter at this place of a list grew over the `ms` before, a second; null where no time passed. */
  rate(index, ms, list, place) {
    const [from, to] = [this.before(index, ms), this.samples[index]];
    const seconds = (to.time_ms - from.time_ms) / 1000;
    return seconds > 0 ? (to[list][place][1] - from[list][place][1]) / seconds : null;
  }

  /** A value for each sample. */
  map(value) {
    return this.samples.map((sample, index) => value(sample, index));
  }
}

/** As `amplification`, from one sample to another; from the beginning without the first. */
export const amplificationBetween = (from, to) => {
  const pages = to.pages_wanted - (from?.pages_wanted ?? 0);
  if (pages <= 0) return null;
  const past = new Map(from?.pages_written);
  const byCause = new Map(to.pages_written.map(([cause, count]) => [cause, (count - (past.get(cause) ?? 0)) / pages]));
  let total = 0;
  for (const part of byCause.values()) total += part;
  return { total, byCause };
};

const ratioBetween = (from, to, place) => {
  let product = 1;
  to.ratios[place].quotients.forEach(([dividend, divisor], i) => {
    const [before, base] = from.ratios[place].quotients[i];
    product *= divisor > base ? (dividend - before) / (divisor - base) : NaN;
  });
  return Number.isFinite(product) ? product : null;
};
