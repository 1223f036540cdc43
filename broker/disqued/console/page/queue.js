// One queue: its figures, and what can be done with it.

import { act } from "./api.js";
import { confirmed } from "./dialogs.js";
import { byId, chip, el, setText } from "./dom.js";
import { count, rate, span } from "./format.js";
import { JobsView } from "./jobs.js";
import { Tiles } from "./tiles.js";

const STATES = [
  ["none", "Running", "Resume", "Clients add jobs to the queue and get jobs from it as usual."],
  ["in", "Adding paused", "Pause adding", "Clients that add jobs to this queue will get an error."],
  ["out", "Delivery paused", "Pause delivery", "Jobs stay in the queue; clients that want them wait."],
  ["all", "Both paused", "Pause both", "Clients that add jobs will get an error, and those that want jobs wait."],
];

const GONE = "There is no such queue on this node now: queues that are empty and unused for long are forgotten.";
const PAUSED = { in: "adding is paused", out: "delivery is paused", all: "paused" };

const TILES = [
  {
    title: "Waiting jobs",
    show: ({ queue, series }) => ({
      value: count(queue.len),
      curve: series.values("len"),
      curveLabel: "Waiting jobs in the last two minutes",
    }),
  },
  {
    title: "In per second",
    show: ({ queue, series }) => ({
      value: rate(series.rate("jobs_in")),
      note: `${count(queue.jobs_in)} so far`,
      curve: series.rates("jobs_in"),
      curveLabel: "Jobs queued per second in the last two minutes",
    }),
  },
  {
    title: "Out per second",
    show: ({ queue, series }) => ({
      value: rate(series.rate("jobs_out")),
      note: `${count(queue.jobs_out)} so far`,
      curve: series.rates("jobs_out"),
      curveLabel: "Jobs delivered per second in the last two minutes",
    }),
  },
  {
    title: "Clients waiting",
    show: ({ queue, series }) => ({
      value: count(queue.blocked),
      note: `last used ${span(queue.idle_s)} ago`,
      curve: series.values("blocked"),
      curveLabel: "Clients waiting in the last two minutes",
    }),
  },
  { title: "From other nodes", show: ({ queue }) => ({ value: `${rate(queue.imports)}/s`, note: "imported jobs" }) },
];

export class QueueView {
  constructor(histories, report) {
    this.histories = histories;
    this.report = report;
    this.key = null;
    this.last = null;
    this.tiles = new Tiles(byId("queue-tiles"), TILES);
    this.jobs = new JobsView(report);
    this.everywhere = el("input", { type: "checkbox", id: "everywhere" });
    this.buttons = STATES.map(([state, name, verb, text]) => {
      const pause = () => this.pause(state, verb, text);
      return [state, el("button", { type: "button", "aria-pressed": "false", onclick: pause }, name)];
    });
    const everywhere = el("label", {}, this.everywhere, " on all nodes");
    byId("pausing").append(...this.buttons.map(([, button]) => button), everywhere);
  }

  open(key) {
    this.key = key;
    this.last = null;
    this.setTitle("…");
    byId("queue-tiles").hidden = true;
    this.jobs.open(key);
    byId("queue-title").focus();
  }

  close() {
    this.key = null;
    this.jobs.open(null);
  }

  show(said) {
    if (this.key === null) return;
    const queue = said.opened;
    byId("queue-tiles").hidden = queue === null;
    byId("pausing").hidden = !said.actions || queue === null;
    this.jobs.allow(said.actions);
    if (queue === null) {
      this.setTitle(this.last?.shown ?? decodeKey(this.key));
      setText(byId("queue-note"), GONE);
      return;
    }
    this.last = queue;
    this.setTitle(queue.shown || "(no name)", PAUSED[queue.pause]);
    setText(byId("queue-note"), said.actions ? "" : "Read only: actions are off on this node (http-actions).");
    for (const [state, button] of this.buttons) button.setAttribute("aria-pressed", String(state === queue.pause));
    this.tiles.fill({ queue, series: this.histories.of(queue.queue) });
  }

  setTitle(name, mark = "") {
    if (this.title === `${mark}/${name}`) return;
    this.title = `${mark}/${name}`;
    byId("queue-title").replaceChildren(name, ...(mark ? [" ", chip(mark, "warn")] : []));
  }

  async pause(state, verb, text) {
    if (this.key === null || !this.last) return;
    const everywhere = this.everywhere.checked;
    const where = everywhere ? "all nodes of the cluster" : "this node only";
    const name = this.last.shown;
    if (!(await confirmed(`${verb}: ${name}`, `${text} This is for ${where}.`, verb))) return;
    const action = { action: "pause", queue: this.key, pause: state, everywhere };
    await this.report(() => act(action), () => "Done.");
  }
}

function decodeKey(key) {
  try {
    return decodeURIComponent(key);
  } catch {
    return key; // bytes that are no text
  }
}
