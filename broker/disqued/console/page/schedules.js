// The schedules of the cluster, with their last and next runs, and what can be done with them.

import { act, getSchedules } from "./api.js";
import { confirmed } from "./dialogs.js";
import { Rows, byId, chip, el, setText } from "./dom.js";
import { count, span } from "./format.js";

const POLL_MS = 2000;
const TONES = { active: "good", paused: "warn", done: "", "no-majority": "bad", invalid: "bad" };
const TEXTS = {
  run: ["Run now", "Its job is added now, also if the schedule is paused. Its next run stays as it is."],
  pause: ["Pause", "It does not run until it is resumed. The times meanwhile do not count as missed."],
  resume: ["Resume", "It runs again from now on."],
};
const DONE = { run: "Job added.", pause: "Schedule paused.", resume: "Schedule resumed." };

export class SchedulesView {
  constructor(report) {
    this.report = report;
    this.isOpen = false;
    this.allowed = false;
    this.asked = 0;
    this.rows = new Rows(byId("schedules-table"), "Schedules", [
      { title: "Name", head: true, fill: (cell, row) => setText(cell, row.name_shown) },
      { title: "When", kind: "wide", fill: (cell, row) => setText(cell, `${row.when} ${row.zone}`.trim()) },
      { title: "Queue", fill: (cell, row) => this.fillQueue(cell, row) },
      { title: "State", fill: (cell, row) => this.fillState(cell, row) },
      { title: "Next run", fill: (cell, row) => this.fillTime(cell, row.next_ms, (away) => `in ${span(away)}`) },
      { title: "Last run", fill: (cell, row) => this.fillTime(cell, row.last_ms, (away) => `${span(-away)} ago`) },
      { title: "Runs", kind: "number", fill: (cell, row) => setText(cell, runsOf(row)) },
      { title: "Actions", fill: (cell, row) => this.fillActions(cell, row) },
    ]);
  }

  open() {
    if (this.isOpen) return;
    this.isOpen = true;
    byId("schedules-title").focus();
    setText(byId("schedules-note"), "Loading…");
    this.follow();
  }

  close() {
    this.isOpen = false;
    this.asked += 1;
  }

  take(update) {
    this.now_ms = update.now_ms;
    if (this.allowed === update.actions) return;
    this.allowed = update.actions;
    this.show();
  }

  // Asks every two seconds while the page is open and in the foreground.
  async follow() {
    this.asked += 1;
    const { asked } = this;
    while (this.isOpen && asked === this.asked) {
      if (!document.hidden) await this.load(asked);
      await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
    }
  }

  async load(asked) {
    try {
      const reply = await getSchedules();
      if (asked !== this.asked) return;
      this.schedules = reply.schedules;
      this.now_ms = reply.now_ms;
      this.show();
    } catch (error) {
      if (asked === this.asked) setText(byId("schedules-note"), error.message);
    }
  }

  show() {
    if (!this.isOpen || !this.schedules) return;
    this.rows.show(this.schedules, (row) => row.name);
    byId("schedules-table").hidden = !this.schedules.length;
    const many = this.schedules.length === 1 ? "1 schedule" : `${count(this.schedules.length)} schedules`;
    setText(byId("schedules-note"), this.schedules.length ? `${many}.` : "No schedules.");
  }

  fillQueue(cell, row) {
    const [link] = cell.children;
    if (link?.textContent === row.queue_shown) return;
    cell.replaceChildren(el("a", { href: `#queue=${row.queue}` }, row.queue_shown || "(no name)"));
  }

  fillState(cell, row) {
    const shown = `${row.state}${row.problem}`;
    if (cell.textContent === shown) return;
    cell.replaceChildren(chip(row.state, TONES[row.state] ?? ""));
    if (row.problem) cell.append(el("p", { class: "quiet" }, row.problem));
  }

  fillTime(cell, at_ms, words) {
    setText(cell, at_ms ? words((at_ms - this.now_ms) / 1000) : "–");
    cell.title = at_ms ? new Date(at_ms).toISOString() : "";
  }

  fillActions(cell, row) {
    cell.item = row;
    if (!cell.firstChild) {
      const buttons = Object.entries(TEXTS).map(([change, [verb]]) => el("button", {
        type: "button", "aria-label": `${verb}: ${row.name_shown}`, onclick: () => this.change(cell.item, change),
      }, verb));
      cell.append(el("span", { class: "bar" }, ...buttons));
    }
    const [run, pause, resume] = cell.querySelectorAll("button");
    run.hidden = !this.allowed;
    pause.hidden = !this.allowed || row.state === "paused";
    resume.hidden = !this.allowed || row.state !== "paused";
  }

  async change(row, change) {
    const [verb, text] = TEXTS[change];
    if (!(await confirmed(`${verb}: ${row.name_shown}`, text, verb))) return;
    await this.report(() => act({ action: "schedule", name: row.name, change }), () => DONE[change]);
    if (this.isOpen) await this.load(this.asked);
  }
}

function runsOf(row) {
  return row.runs_missed ? `${count(row.runs)}, ${count(row.runs_missed)} missed` : count(row.runs);
}
