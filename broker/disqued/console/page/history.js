// What was seen in the last two minutes, and what follows from it: rates and curves.

export const KEPT = 120;

export class Series {
  constructor() {
    this.samples = [];
  }

  // Counters only grow; when one is smaller than before, what it counts began anew and the old samples say nothing.
  add(at_ms, values, counters) {
    const last = this.samples.at(-1);
    if (last && (at_ms <= last.at_ms || counters.some((name) => values[name] < last[name]))) this.samples = [];
    this.samples.push({ at_ms, ...values });
    if (this.samples.length > KEPT) this.samples.shift();
  }

  values(name) {
    return this.samples.map((sample) => sample[name]);
  }

  // Growth of a counter per second, between all neighbours.
  rates(name) {
    return this.samples.slice(1).map((sample, index) => {
      const before = this.samples[index];
      return Math.max(0, ((sample[name] - before[name]) * 1000) / (sample.at_ms - before.at_ms));
    });
  }

  // Over the last five seconds, so that it can be read.
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

  // Those of which nothing came for a while are of no use any more.
  forget(now_ms) {
    for (const [key, series] of this.all) {
      if (now_ms - (series.samples.at(-1)?.at_ms ?? 0) > KEPT * 1000) this.all.delete(key);
    }
  }
}
