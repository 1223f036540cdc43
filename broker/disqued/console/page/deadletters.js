// The dead letters of all members, which are loaded from one member after the other.

import { getJobs } from "./api.js";
import { nameOf } from "./cluster.js";

const MOST = 1000;
const WHY_NOT = { silent: "no answer", refuses: "no permission", unsupported: "not asked", waiting: "no answer" };

export class DeadLetters {
  constructor() {
    this.clear([]);
  }

  clear(members) {
    this.jobs = [];
    this.ids = new Set();
    this.names = new Map(members.map((member) => [member.id, nameOf(member)]));
    this.left = new Map(members.filter((member) => member.answer === "answers").map((member) => [member.id, "0"]));
    this.missing = new Map(members.filter((member) => WHY_NOT[member.answer]).map((member) => [member.id, WHY_NOT[member.answer]]));
    this.own = members.find((member) => member.myself)?.id;
  }

  get complete() {
    return !this.left.size;
  }

  // Loads MOST dead letters, or a few more. A scan looks at all jobs of a member, so it runs on request only.
  async load(isWanted) {
    const { jobs, left } = this;
    const least = jobs.length + MOST;
    for (const id of [...left.keys()]) {
      while (left.has(id)) {
        if (jobs.length >= least || !isWanted()) return;
        await this.loadPart(id);
      }
    }
  }

  async loadPart(id) {
    const { jobs, ids, left, missing } = this;
    try {
      const reply = await getJobs({ state: "dead", member: id, cursor: left.get(id) });
      for (const job of reply.jobs.filter((one) => !ids.has(one.id))) {
        ids.add(job.id);
        jobs.push({ ...job, member: id, isHere: id === this.own || job.nodes.includes(this.own) });
      }
      this.seen_ms = Date.now();
      if (reply.cursor === "0") left.delete(id);
      else left.set(id, reply.cursor);
    } catch (error) {
      if (id === this.own) throw error;
      left.delete(id);
      missing.set(id, error.message);
    }
  }

  // Which members are not included, and why.
  get missingNote() {
    const names = [...this.missing].map(([id, why]) => `${this.names.get(id)} (${why})`);
    return names.length ? ` Not included: ${names.join(", ")}.` : "";
  }
}
