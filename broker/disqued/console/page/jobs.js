// Jobs of the open queue: the oldest or newest queued ones, or those in another state, and actions on them.

import { act, getGraph, getJobs } from "./api.js";
import { confirmed } from "./dialogs.js";
import { Rows, byId, chip, el, setText } from "./dom.js";
import { bytes, count, span } from "./format.js";
import { drawGraph } from "./graph.js";
import { addDetails, fillJob, isOpen, jobFacts, showFacts } from "./jobrows.js";

const REFRESH_MS = 2000;
const PEEKED = ["oldest", "youngest"];
const STATES = { "wait-repl": "waiting for replication", active: "active", queued: "queued", acked: "acknowledged" };
const MOST_AT_ONCE = 50;
const ACTIONS = [
  {
    name: "requeue",
    text: "Run now",
    verb: "Run now",
    done: "queued",
    explanation: "The jobs are delivered now, even if they are delayed or a worker is still processing them.",
  },
  {
    name: "cancel",
    text: "Cancel on all nodes",
    verb: "Cancel",
    done: "canceled",
    danger: true,
    explanation: "The jobs are deleted on all nodes that can be reached (FASTACK). A worker that has one continues.",
  },
  {
    name: "delete",
    text: "Delete from this node",
    verb: "Delete",
    done: "deleted",
    danger: true,
    explanation: "The jobs are deleted from this node. Other nodes with copies can still deliver them; "
      + "use ACKJOB to finish a job on all nodes.",
  },
];

export class JobsView {
  constructor(report) {
    this.report = report;
    this.key = null;
    this.jobs = [];
    this.cursor = "0";
    this.chosen = new Set();
    this.details = new Set();
    this.allowed = false;
    this.asked = 0;
    this.timer = null;
    this.rows = new Rows(byId("jobs"), "Jobs of this queue", [
      { title: "Job", head: true, kind: "fixed", fill: (cell, job, row) => fillJob(cell, job, row, this) },
      { title: "State", fill: (cell, job) => this.fillState(cell, job) },
      { title: "Age", kind: "number", fill: (cell, job) => setText(cell, span(job.age_ms / 1000)) },
      {
        title: "Redeliveries",
        kind: "number",
        fill: (cell, job) => setText(cell, count(job.nacks + job.additional_deliveries)),
      },
      { title: "TTL", kind: "number", fill: (cell, job) => setText(cell, span(job.ttl_s)) },
      { title: "Size", kind: "number", fill: (cell, job) => setText(cell, bytes(job.body_bytes)) },
      { title: "Body", kind: "wide", fill: (cell, job) => this.fillBody(cell, job) },
    ]);
    byId("jobs-state").addEventListener("change", () => this.restart());
    byId("jobs-refresh").addEventListener("click", () => this.load());
    byId("jobs-more").addEventListener("click", () => this.load(this.cursor));
    this.makeActions();
  }

  makeActions() {
    this.note = el("span", { class: "quiet" });
    const buttons = ACTIONS.map((action) => {
      const kind = action.danger ? "danger" : "";
      return el("button", { type: "button", class: kind, onclick: () => this.act(action) }, action.text);
    });
    byId("jobs-actions").append(this.note, ...buttons);
  }

  open(key) {
    this.key = key;
    this.jobs = [];
    this.chosen.clear();
    this.details.clear();
    byId("jobs-state").value = PEEKED[0];
    this.restart();
  }

  allow(allowed) {
    if (this.allowed === allowed) return;
    this.allowed = allowed;
    this.show();
  }

  restart() {
    this.jobs = [];
    this.cursor = "0";
    this.chosen.clear();
    this.rows.show([], () => "");
    setText(byId("jobs-note"), this.key === null ? "" : "Loading…");
    this.load();
  }

  // Queued jobs are refreshed automatically; other states only on request, because a scan can be expensive.
  async load(cursor = "0") {
    clearTimeout(this.timer);
    this.asked += 1;
    const [asked, key, state] = [this.asked, this.key, byId("jobs-state").value];
    if (key === null) return;
    try {
      const reply = await getJobs({ queue: key, state, cursor });
      if (asked !== this.asked) return;
      const kept = cursor === "0" ? [] : this.jobs;
      const known = new Set(kept.map((job) => job.id));
      this.jobs = [...kept, ...reply.jobs.filter((job) => !known.has(job.id))];
      this.cursor = reply.cursor;
      this.show();
    } catch (error) {
      if (asked === this.asked) setText(byId("jobs-note"), error.message);
    }
    if (asked === this.asked && PEEKED.includes(state)) this.timer = setTimeout(() => this.refresh(), REFRESH_MS);
  }

  refresh() {
    if (document.hidden || this.paused) this.timer = setTimeout(() => this.refresh(), REFRESH_MS);
    else this.load();
  }

  show() {
    for (const id of this.chosen) if (!this.jobs.some((job) => job.id === id)) this.chosen.delete(id);
    this.rows.show(this.jobs, (job) => job.id);
    for (const [id, row] of this.rows.rows) this.showDetails(id, row);
    byId("jobs").hidden = !this.jobs.length;
    byId("jobs-more").hidden = this.cursor === "0";
    const none = this.cursor === "0" ? "No jobs found." : "No jobs found so far.";
    setText(byId("jobs-note"), this.jobs.length ? `${count(this.jobs.length)} shown` : none);
    this.showChosen();
  }

  showChosen() {
    byId("jobs-actions").hidden = !this.allowed || !this.chosen.size;
    setText(this.note, `${this.chosen.size} selected`);
  }

  fillState(cell, job) {
    const text = STATES[job.state] ?? job.state;
    if (cell.textContent !== text) cell.replaceChildren(chip(text, job.state === "queued" ? "good" : ""));
  }

  fillBody(cell, job) {
    if (!cell.firstChild) cell.append(el("span", { class: "preview mono" }));
    setText(cell.firstChild, job.body.slice(0, 200));
  }

  select(id, selected) {
    if (selected) this.chosen.add(id);
    else this.chosen.delete(id);
    this.showChosen();
  }

  toggle(id) {
    if (!this.details.delete(id)) this.details.add(id);
    this.show();
  }

  showDetails(id, row) {
    if (!isOpen(row, this, id)) return;
    const job = row.item;
    if (!row.more) addDetails(row, 7);
    showFacts(row, jobFacts(job));
    setText(row.body, job.body);
    if (job.parents || job.children) this.showGraph(row, job.id);
  }

  // Asks for the graph when the details open, and when the jobs are loaded again.
  async showGraph(row, id) {
    if (row.graphOf === this.jobs) return;
    row.graphOf = this.jobs;
    try {
      drawGraph(row.graph, await getGraph(id));
    } catch (error) {
      setText(row.graph, error.message);
    }
    row.graph.hidden = false;
  }

  async act(action) {
    const left = [...this.chosen];
    const many = left.length === 1 ? "1 job" : `${left.length} jobs`;
    const title = `${action.verb}: ${many}`;
    if (!(await confirmed(title, action.explanation, action.verb, action.danger))) return;
    let done = 0;
    // When it is called again after an error, it continues with the remaining jobs.
    const work = async () => {
      while (left.length) {
        const jobs = left.slice(0, MOST_AT_ONCE);
        done += (await act({ action: action.name, jobs })).reply;
        left.splice(0, jobs.length);
        for (const id of jobs) this.chosen.delete(id);
      }
    };
    if (await this.report(work, () => `${done} of ${many} ${action.done}.`)) this.load();
    else this.show();
  }
}
