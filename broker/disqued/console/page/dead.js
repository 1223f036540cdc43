// Dead letters of all members, by queue and reason, and actions on all of a kind or on chosen ones.

import { act } from "./api.js";
import { DeadLetters } from "./deadletters.js";
import { confirmed } from "./dialogs.js";
import { Rows, byId, el, setText } from "./dom.js";
import { attempts, count, span } from "./format.js";
import { addDetails, bodyFact, fillJob, isOpen, showFacts } from "./jobrows.js";
import { RedrivesView } from "./redrives.js";

const MOST_AT_ONCE = 50;
const NO_REASON = "(no reason)";

export class DeadView {
  constructor(report) {
    this.report = report;
    this.isOpen = false;
    this.letters = new DeadLetters();
    this.redrives = new RedrivesView(report, () => this.load());
    this.members = null;
    this.asked = 0;
    this.group = null;
    this.chosen = new Set();
    this.details = new Set();
    this.allowed = false;
    this.groups = new Rows(byId("dead-groups"), "Dead letters by queue and reason", [
      { title: "Queue", head: true, fill: (cell, group) => this.fillQueue(cell, group) },
      { title: "Reason", kind: "wide", fill: (cell, group) => setText(cell, group.reason_shown || NO_REASON) },
      { title: "Jobs", kind: "number", fill: (cell, group) => setText(cell, count(group.jobs.length)) },
      { title: "Oldest", kind: "number", fill: (cell, group) => setText(cell, span(group.oldest_s)) },
      { title: "Failed in", fill: (cell, group) => setText(cell, [...group.origins].join(", ")) },
      { title: "Actions", fill: (cell, group) => this.fillActions(cell, group) },
    ]);
    this.rows = new Rows(byId("dead-jobs"), "Dead letters", [
      { title: "Job", head: true, kind: "fixed", fill: (cell, job, row) => fillJob(cell, job, row, this) },
      { title: "Failed in", fill: (cell, job) => setText(cell, job.origin_shown || "–") },
      { title: "Dead for", kind: "number", fill: (cell, job) => setText(cell, span(this.deadFor(job))) },
      { title: "Attempts", kind: "number", fill: (cell, job) => setText(cell, count(job.attempts_before ?? 0)) },
      { title: "Reason", kind: "wide", fill: (cell, job) => this.fillPreview(cell, job.reason_shown || NO_REASON) },
      { title: "Body", kind: "wide", fill: (cell, job) => this.fillPreview(cell, job.body.slice(0, 200)) },
    ]);
    byId("dead-refresh").addEventListener("click", () => this.load());
    byId("dead-more").addEventListener("click", () => this.loadMore());
    byId("dead-all").addEventListener("click", () => this.choose(null));
    this.note = el("span", { class: "quiet" });
    const redrive = () => this.redriveChosen();
    const cancel = () => this.cancelChosen();
    byId("dead-actions").append(
      this.note,
      el("button", { type: "button", onclick: () => this.selectShown() }, "Select all shown"),
      el("button", { type: "button", onclick: redrive }, "Redrive selected"),
      el("button", { type: "button", class: "danger", onclick: cancel }, "Delete selected"),
    );
  }

  open() {
    this.isOpen = true;
    this.group = null;
    this.chosen.clear();
    this.details.clear();
    byId("dead-title").focus();
    setText(byId("dead-note"), "Loading…");
    this.redrives.open();
    if (this.members) this.load();
  }

  close() {
    this.isOpen = false;
    this.redrives.close();
  }

  // The first dead letters are loaded when it is known which members answer.
  take(update) {
    const first = this.members === null;
    if (first && update.members.some((member) => member.answer === "waiting")) return;
    this.members = update.members;
    this.redrives.take(update);
    if (first && this.isOpen) this.load();
    if (this.allowed === update.actions) return;
    this.allowed = update.actions;
    this.show();
  }

  load() {
    this.letters.clear(this.members ?? []);
    return this.loadMore();
  }

  async loadMore() {
    this.asked += 1;
    const asked = this.asked;
    this.loading = true;
    setText(byId("dead-note"), "Loading…");
    try {
      await this.letters.load(() => this.isOpen && asked === this.asked);
      if (asked !== this.asked) return;
      this.loading = false;
      this.show();
      this.redrives.list(this.letters.jobs);
    } catch (error) {
      if (asked !== this.asked) return;
      this.loading = false;
      setText(byId("dead-note"), error.message);
    }
  }

  deadFor(job) {
    return job.dead_since_ms === null ? null : Math.max(0, (this.letters.seen_ms - job.dead_since_ms) / 1000);
  }

  grouped() {
    const groups = new Map();
    for (const job of this.letters.jobs) {
      const key = groupOf(job);
      const { queue, queue_shown, reason, reason_shown } = job;
      const made = { key, queue, queue_shown, reason, reason_shown, jobs: [], origins: new Set(), oldest_s: 0 };
      const group = groups.get(key) ?? made;
      groups.set(key, group);
      group.jobs.push(job);
      group.origins.add(job.origin_shown);
      group.oldest_s = Math.max(group.oldest_s, this.deadFor(job) ?? 0);
    }
    return [...groups.values()].sort((one, other) => other.jobs.length - one.jobs.length);
  }

  show() {
    if (!this.isOpen || this.loading) return;
    const { jobs, complete, names, missingNote } = this.letters;
    for (const id of this.chosen) if (!jobs.some((job) => job.id === id)) this.chosen.delete(id);
    const groups = this.grouped();
    if (!groups.some((group) => group.key === this.group)) this.group = null;
    this.groups.show(groups, (group) => group.key);
    this.shown = jobs.filter((job) => this.group === null || groupOf(job) === this.group);
    this.rows.show(this.shown, (job) => job.id);
    for (const [id, row] of this.rows.rows) this.showDetails(id, row);
    byId("dead-list").hidden = !jobs.length;
    byId("dead-groups").hidden = !jobs.length;
    byId("dead-more").hidden = complete;
    byId("dead-all").hidden = this.group === null;
    const where = names.size > 1 ? ` on ${count(names.size - this.letters.missing.size)} members` : "";
    const many = jobs.length ? deadLetters(jobs.length) : "No dead letters";
    setText(byId("dead-note"), `${many}${where}${complete ? "" : " so far"}.${missingNote}`);
    byId("dead-actions").hidden = !this.allowed || !jobs.length;
    setText(this.note, `${this.chosen.size} selected`);
  }

  fillQueue(cell, group) {
    if (!cell.firstChild) cell.append(el("a", { href: `#queue=${group.queue}` }, group.queue_shown || "(no name)"));
  }

  fillActions(cell, group) {
    cell.item = group;
    if (!cell.firstChild) {
      const which = `${group.queue_shown}, ${group.reason_shown || NO_REASON}`;
      const view = () => this.choose(cell.item.key);
      const redrive = () => this.redriveGroup(cell.item);
      cell.append(el("span", { class: "bar" },
        el("button", { type: "button", "aria-label": `Show ${which}`, onclick: view }, "Show"),
        el("button", { type: "button", "aria-label": `Redrive ${which}`, onclick: redrive }, "Redrive"),
      ));
    }
    const [view, redrive] = cell.querySelectorAll("button");
    view.setAttribute("aria-pressed", String(this.group === group.key));
    redrive.hidden = !this.allowed || !group.queue || !group.reason;
  }

  fillPreview(cell, text) {
    if (!cell.firstChild) cell.append(el("span", { class: "preview" }));
    setText(cell.firstChild, text);
  }

  choose(group) {
    this.group = group;
    this.chosen.clear();
    this.show();
  }

  select(id, selected) {
    if (selected) this.chosen.add(id);
    else this.chosen.delete(id);
    setText(this.note, `${this.chosen.size} selected`);
  }

  selectShown() {
    for (const job of this.shown) this.chosen.add(job.id);
    this.show();
  }

  toggle(id) {
    if (!this.details.delete(id)) this.details.add(id);
    this.show();
  }

  showDetails(id, row) {
    if (!isOpen(row, this, id) || row.more) return;
    const job = row.item;
    addDetails(row, 6);
    showFacts(row, {
      ID: job.id,
      Reason: job.reason_shown || NO_REASON,
      "Queued on": this.letters.names.get(job.member),
      "Failed in": `${job.origin_shown || "–"}, after ${attempts(job.attempts_before)}`,
      "First job": job.origin_id || "–",
      "Dead since": job.dead_since_ms === null ? "–" : new Date(job.dead_since_ms).toISOString(),
      "Deleted in": span(job.ttl_s),
      Body: bodyFact(job),
    });
    setText(row.body, job.body);
  }

  redriveGroup({ queue, queue_shown, reason, reason_shown }) {
    return this.redrives.start({ key: queue, shown: queue_shown }, { key: reason, shown: reason_shown });
  }

  // A node moves only jobs of which it has a copy (MOVEJOB).
  async redriveChosen() {
    const movable = this.letters.jobs.filter((job) => this.chosen.has(job.id) && job.origin);
    const chosen = movable.filter((job) => job.isHere);
    const away = movable.length - chosen.length;
    const stay = away ? ` ${deadLetters(away)} of which this node has no copy stay: redrive their queue, or use the page of their member.` : "";
    if (away && !chosen.length) {
      await this.report(async () => { throw new Error(stay.trim()); }, () => "");
      return;
    }
    const text = `The jobs return to the queues in which they failed, and start with no attempts.${stay}`;
    const jobsOf = new Map();
    for (const job of chosen) jobsOf.set(job.origin, [...(jobsOf.get(job.origin) ?? []), job.id]);
    const parts = [...jobsOf].flatMap(([queue, ids]) => inParts(ids).map((jobs) => ({ action: "move", queue, jobs })));
    await this.run("Redrive", "redriven", text, chosen.length, parts);
  }

  async cancelChosen() {
    const jobs = this.letters.jobs.filter((job) => this.chosen.has(job.id));
    const chosen = jobs.map((job) => job.id);
    const away = jobs.filter((job) => !job.isHere).length;
    const text = "The jobs are deleted on all nodes that can be reached (FASTACK). Nobody will do their work.";
    const parts = inParts(chosen).map((ids) => ({ action: "cancel", jobs: ids }));
    await this.run("Delete", "deleted", text, chosen.length, parts, { danger: true, away });
  }

  // When it is called again after an error, it continues with the remaining parts.
  // `away` of the jobs are not known to this node, so it only tells the others.
  async run(verb, done, text, total, parts, { danger = false, away = 0 } = {}) {
    const many = deadLetters(total);
    if (!total || !(await confirmed(`${verb}: ${many}`, text, verb, danger))) return;
    let sum = 0;
    const work = async () => {
      while (parts.length) {
        sum += (await act(parts[0])).reply;
        parts.shift();
      }
    };
    const told = away ? `; the other members were told to do so with ${count(away)}` : "";
    await this.report(work, () => `${sum} of ${many} ${done}${told}.`);
    this.load();
  }
}

function deadLetters(number) {
  return number === 1 ? "1 dead letter" : `${count(number)} dead letters`;
}

function groupOf(job) {
  return `${job.queue}\n${job.reason_shown}`;
}

function inParts(ids) {
  const parts = [];
  for (let at = 0; at < ids.length; at += MOST_AT_ONCE) parts.push(ids.slice(at, at + MOST_AT_ONCE));
  return parts;
}
