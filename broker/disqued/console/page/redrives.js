// The queues with dead letters, and REDRIVE of a whole queue: started, followed and cancelled.

import { act, getRedrive } from "./api.js";
import { confirmed } from "./dialogs.js";
import { Rows, byId, el, setText } from "./dom.js";
import { count, span } from "./format.js";

const POLL_MS = 1000;
const MOST_ASKED = 20;
const RUNNING = "running";

export class RedrivesView {
  // `ended` is called when a task has ended that ran while the page was open.
  constructor(report, ended) {
    this.report = report;
    this.ended = ended;
    this.isOpen = false;
    this.allowed = false;
    this.queues = new Map();
    this.live = new Map();
    this.tasks = new Map();
    this.followed = new Set();
    this.now_ms = 0;
    this.rows = new Rows(byId("dead-queues"), "Queues with dead letters", [
      { title: "Queue", head: true, fill: (cell, queue) => this.fillQueue(cell, queue) },
      { title: "Dead letters", kind: "number", fill: (cell, queue) => setText(cell, count(queue.dead)) },
      { title: "Redrive", kind: "wide", fill: (cell, queue) => setText(cell, this.describe(this.tasks.get(queue.key))) },
      { title: "Actions", fill: (cell, queue) => this.fillActions(cell, queue) },
    ]);
  }

  get rate() {
    const input = byId("dead-rate");
    return input.reportValidity() ? input.valueAsNumber : null;
  }

  isRunning(key) {
    return this.tasks.get(key)?.state === RUNNING;
  }

  open() {
    this.isOpen = true;
    this.tasks.clear();
  }

  close() {
    this.isOpen = false;
  }

  take(update) {
    this.allowed = update.actions;
    this.now_ms = update.now_ms;
    this.live = new Map(update.queues.map((queue) => [queue.queue, queue.dead]));
    if (this.isOpen) this.show();
  }

  // Shows the queues of these jobs, and asks how far their tasks are.
  async list(jobs) {
    this.queues = new Map();
    for (const job of jobs) {
      if (!job.queue) continue; // its name is too long to ask about
      const queue = this.queues.get(job.queue) ?? { key: job.queue, shown: job.queue_shown, loaded: 0 };
      this.queues.set(job.queue, queue);
      queue.loaded += 1;
    }
    for (const [key, { shown }] of this.tasks) {
      if (!this.queues.has(key)) this.queues.set(key, { key, shown, loaded: 0 });
    }
    this.show();
    for (const queue of [...this.queues.values()].slice(0, MOST_ASKED)) await this.follow(queue);
  }

  show() {
    const rows = [...this.queues.values()].map((queue) => ({ ...queue, dead: this.live.get(queue.key) ?? queue.loaded }));
    rows.sort((one, other) => other.dead - one.dead);
    byId("dead-queues").hidden = !rows.length;
    byId("dead-limit").hidden = !rows.length || !this.allowed;
    this.rows.show(rows, (queue) => queue.key);
  }

  describe(task) {
    if (!task) return "–";
    const parts = [`${count(task.moved)} moved`];
    if (task.state === RUNNING) parts.push(`${count(task.left)} left`);
    if (task.rate !== null) parts.push(`up to ${count(task.rate)} per second`);
    if (task.failed) parts.push(`${count(task.failed)} stay, because they do not say where they failed`);
    if (task.state !== RUNNING) parts.push(`started ${span(Math.max(0, this.now_ms - task.started) / 1000)} ago`);
    return `${task.state}: ${parts.join(", ")}`;
  }

  fillQueue(cell, queue) {
    if (!cell.firstChild) cell.append(el("a", { href: `#queue=${queue.key}` }, queue.shown || "(no name)"));
  }

  fillActions(cell, queue) {
    if (!cell.firstChild) {
      const start = () => this.start(queue);
      const cancel = () => this.cancel(queue);
      cell.append(el("span", { class: "bar" },
        el("button", { type: "button", "aria-label": `Redrive queue ${queue.shown}`, onclick: start }, "Redrive queue"),
        el("button", { type: "button", "aria-label": `Cancel redrive of ${queue.shown}`, onclick: cancel }, "Cancel redrive"),
      ));
    }
    const [start, cancel] = cell.querySelectorAll("button");
    start.hidden = !this.allowed || this.isRunning(queue.key);
    cancel.hidden = !this.allowed || !this.isRunning(queue.key);
  }

  // Starts a task for a whole queue, or for its dead letters with one reason.
  async start({ key, shown }, reason = null) {
    const { rate } = this;
    if (rate === null) return;
    const which = reason === null ? "the jobs of this queue" : "the dead letters of this queue with this reason";
    const text = `All nodes move ${which} back to the queues in which they failed, up to ${count(rate)} per second in all. They start `
      + "with no attempts.";
    const title = reason === null ? `Redrive queue: ${shown}` : `Redrive ${shown}: ${reason.shown}`;
    if (!(await confirmed(title, text, "Redrive"))) return;
    const action = { action: "redrive", queue: key, rate, ...(reason === null ? {} : { reason: reason.key }) };
    if (!(await this.report(() => act(action), () => "Redrive started."))) return;
    this.followed.delete(key); // a question from before may find no task
    await this.follow({ key, shown }, true);
  }

  async cancel({ key, shown }) {
    const text = "Jobs that were moved stay where they are. The others stay dead letters.";
    if (!(await confirmed(`Cancel the redrive: ${shown}`, text, "Cancel redrive"))) return;
    await this.report(() => act({ action: "cancel-redrive", queue: key }), () => "Redrive cancelled.");
  }

  // Asks how far a task is, once a second until it ends.
  async follow({ key, shown }, started = false) {
    if (this.followed.has(key)) return;
    this.followed.add(key);
    let ran = started;
    try {
      while (this.isOpen) {
        const { redrive } = await getRedrive({ queue: key });
        if (redrive) this.tasks.set(key, { ...redrive, shown });
        this.show();
        if (redrive?.state !== RUNNING) break;
        if (!ran) { // the page shows other queues meanwhile
          this.followed.delete(key);
          this.follow({ key, shown }, true);
          return;
        }
        await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
      }
    } catch {
      ran = false; // the user may not run REDRIVE, or the node is gone: the page says so elsewhere
    }
    this.followed.delete(key);
    if (ran && this.isOpen) this.ended();
  }
}
