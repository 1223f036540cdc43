// Samples of the last two minutes, for rates and sparklines.

export const KEPT = 120;

export class Series {
  constructor() {
    this.samples = [];
  }

  // A counter that decreases was reset, so older samples are discarded.
  add(at_ms, values, counters) {
    const last = this.samples.at(-1);
    if (last && (at_ms <= last.at_ms || counters.some((name) => values[name] < last[name]))) this.samples = [];
    this.samples.push({ at_ms, ...values });
    if (this.samples.length > KEPT) this.samples.shift();
  }

  values(name) {
    return this.samples.map((sample) => sample[name]);
  }

  // The rate of a counter per second, between consecutive samples.
  rates(name) {
    return this.samples.slice(1).map((sample, index) => {
      const before = this.samples[index];
      return Math.max(0, ((sample[name] - before[name]) * 1000) / (sample.at_ms - before.at_ms));
    });
  }

  // The average rate of the last five seconds.
  rate(name) {
    const last = this.samples.at(-1);
    const first = this.samples.at(-6) ?? this.samples[0];
    if (!last || last === first) return null;
    return ((last[name] - first[name]) * 1000) / (last.at_ms - first.at_ms);
  }
}

export class Histories {
  constructor() {
    this.all = new Map();
  }

  of(key) {
    if (!this.all.has(key)) this.all.set(key, new Series());
    return this.all.get(key);
  }

  // Removes series without recent samples.
  forget(now_ms) {
    for (const [key, series] of this.all) {
      if (now_ms - (series.samples.at(-1)?.at_ms ?? 0) > KEPT * 1000) this.all.delete(key);
    }
  }
}
