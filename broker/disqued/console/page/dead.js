// Dead letters of this node, by queue and reason, and actions on all of a kind or on chosen ones.

import { act, getJobs } from "./api.js";
import { confirmed } from "./dialogs.js";
import { Rows, byId, el, setText } from "./dom.js";
import { attempts, count, span } from "./format.js";
import { addDetails, bodyFact, fillJob, isOpen, showFacts } from "./jobrows.js";

const MOST = 1000;
const MOST_AT_ONCE = 50;
const NO_REASON = "(no reason)";

export class DeadView {
  constructor(report) {
    this.report = report;
    this.isOpen = false;
    this.jobs = [];
    this.cursor = "0";
    this.asked = 0;
    this.group = null;
    this.chosen = new Set();
    this.details = new Set();
    this.allowed = false;
    this.everywhere = 0;
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
    byId("dead-more").addEventListener("click", () => this.load(this.cursor));
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
    this.load();
  }

  close() {
    this.isOpen = false;
  }

  take(update) {
    const everywhere = update.queues.reduce((sum, queue) => sum + queue.dead, 0);
    if (this.allowed === update.actions && this.everywhere === everywhere) return;
    this.allowed = update.actions;
    this.everywhere = everywhere;
    this.someQueues = update.queues.length < update.totals.registered_queues;
    this.show();
  }

  // A scan looks at all jobs of the node, so it runs on request only.
  async load(cursor = "0") {
    this.asked += 1;
    const asked = this.asked;
    if (cursor === "0") this.jobs = [];
    this.loading = true;
    setText(byId("dead-note"), "Loading…");
    const least = this.jobs.length + MOST;
    try {
      do {
        const reply = await getJobs({ state: "dead", cursor });
        if (asked !== this.asked) return;
        const known = new Set(this.jobs.map((job) => job.id));
        this.jobs.push(...reply.jobs.filter((job) => !known.has(job.id)));
        this.seen_ms = Date.now();
        ({ cursor } = reply);
        this.cursor = cursor;
      } while (cursor !== "0" && this.jobs.length < least && this.isOpen);
      this.loading = false;
      this.show();
    } catch (error) {
      if (asked !== this.asked) return;
      this.loading = false;
      setText(byId("dead-note"), error.message);
    }
  }

  deadFor(job) {
    return job.dead_since_ms === null ? null : Math.max(0, (this.seen_ms - job.dead_since_ms) / 1000);
  }

  grouped() {
    const groups = new Map();
    for (const job of this.jobs) {
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
    for (const id of this.chosen) if (!this.jobs.some((job) => job.id === id)) this.chosen.delete(id);
    const groups = this.grouped();
    if (!groups.some((group) => group.key === this.group)) this.group = null;
    this.groups.show(groups, (group) => group.key);
    this.shown = this.jobs.filter((job) => this.group === null || groupOf(job) === this.group);
    this.rows.show(this.shown, (job) => job.id);
    for (const [id, row] of this.rows.rows) this.showDetails(id, row);
    byId("dead-list").hidden = !this.jobs.length;
    byId("dead-groups").hidden = !this.jobs.length;
    byId("dead-more").hidden = this.cursor === "0";
    byId("dead-all").hidden = this.group === null;
    const more = this.cursor === "0" ? "" : " so far";
    const here = this.jobs.length ? `${count(this.jobs.length)} on this node${more}.` : `No dead letters on this node${more}.`;
    const others = this.everywhere > this.jobs.length && this.cursor === "0"
      ? ` All members have ${this.someQueues ? "at least " : ""}${count(this.everywhere)}: open the page of another member to see its own.` : "";
    setText(byId("dead-note"), here + others);
    byId("dead-actions").hidden = !this.allowed || !this.jobs.length;
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
      "Failed in": `${job.origin_shown || "–"}, after ${attempts(job.attempts_before)}`,
      "First job": job.origin_id || "–",
      "Dead since": job.dead_since_ms === null ? "–" : new Date(job.dead_since_ms).toISOString(),
      "Deleted in": span(job.ttl_s),
      Body: bodyFact(job),
    });
    setText(row.body, job.body);
  }

  async redriveGroup(group) {
    const { queue, queue_shown, reason, reason_shown } = group;
    const text = "All nodes move the dead letters of this queue with this reason back to the queues in which they failed, up to 500 "
      + "per second. They start with no attempts.";
    if (!(await confirmed(`Redrive ${queue_shown}: ${reason_shown || NO_REASON}`, text, "Redrive"))) return;
    if (await this.report(() => act({ action: "redrive", queue, reason }), () => "Redrive started.")) this.load();
  }

  async redriveChosen() {
    const chosen = this.jobs.filter((job) => this.chosen.has(job.id) && job.origin);
    const text = "The jobs return to the queues in which they failed, and start with no attempts.";
    const jobsOf = new Map();
    for (const job of chosen) jobsOf.set(job.origin, [...(jobsOf.get(job.origin) ?? []), job.id]);
    const parts = [...jobsOf].flatMap(([queue, ids]) => inParts(ids).map((jobs) => ({ action: "move", queue, jobs })));
    await this.run("Redrive", "redriven", text, chosen.length, parts);
  }

  async cancelChosen() {
    const chosen = this.jobs.filter((job) => this.chosen.has(job.id)).map((job) => job.id);
    const text = "The jobs are deleted on all nodes that can be reached (FASTACK). Nobody will do their work.";
    const parts = inParts(chosen).map((jobs) => ({ action: "cancel", jobs }));
    await this.run("Delete", "deleted", text, chosen.length, parts, true);
  }

  // When it is called again after an error, it continues with the remaining parts.
  async run(verb, done, text, total, parts, danger = false) {
    const many = total === 1 ? "1 dead letter" : `${total} dead letters`;
    if (!total || !(await confirmed(`${verb}: ${many}`, text, verb, danger))) return;
    let sum = 0;
    const work = async () => {
      while (parts.length) {
        sum += (await act(parts[0])).reply;
        parts.shift();
      }
    };
    await this.report(work, () => `${sum} of ${many} ${done}.`);
    this.load();
  }
}

function groupOf(job) {
  return `${job.queue}\n${job.reason_shown}`;
}

function inParts(ids) {
  const parts = [];
  for (let at = 0; at < ids.length; at += MOST_AT_ONCE) parts.push(ids.slice(at, at + MOST_AT_ONCE));
  return parts;
}
