// One queue: its figures in the whole cluster and on each member, its jobs on this node, and actions.

import { act } from "./api.js";
import { nameOf } from "./cluster.js";
import { confirmed } from "./dialogs.js";
import { Rows, byId, chip, el, setText } from "./dom.js";
import { count, rate, span } from "./format.js";
import { JobsView } from "./jobs.js";
import { LIMITS, PAUSES } from "./queues.js";
import { SettingsView } from "./settings.js";
import { Tiles } from "./tiles.js";

const STATES = [
  ["none", "Running", "Resume", "Clients can add jobs to the queue and fetch jobs from it."],
  ["in", "Input paused", "Pause input", "Clients that add jobs to this queue get an error."],
  ["out", "Output paused", "Pause output", "Jobs stay in the queue; clients that fetch jobs block."],
  ["all", "Both paused", "Pause both", "Clients that add jobs get an error, and clients that fetch jobs block."],
];

const GONE = "No member that answers has this queue. Queues that are empty and unused for some time are deleted.";
const TILES = [
  {
    title: "Queued jobs",
    show: ({ queue, series }) => ({
      value: count(queue.len),
      note: [[queue.leased, "with workers"], [queue.delayed, "delayed"], [queue.held, "waiting for others"],
        [queue.dead, "dead letters"]].filter(([many]) => many)
        .map(([many, what]) => `${count(many)} ${what}`).join(", "),
      curve: series.values("len"),
      curveLabel: "Queued jobs in the last two minutes",
    }),
  },
  {
    title: "In per second",
    show: ({ queue, series }) => ({
      value: rate(queue.in_per_s),
      note: `${count(queue.jobs_in)} in total`,
      curve: series.values("in_per_s"),
      curveLabel: "Jobs queued per second in the last two minutes",
    }),
  },
  {
    title: "Out per second",
    show: ({ queue, series }) => ({
      value: rate(queue.out_per_s),
      note: `${count(queue.jobs_out)} in total`,
      curve: series.values("out_per_s"),
      curveLabel: "Jobs delivered per second in the last two minutes",
    }),
  },
  {
    title: "Blocked clients",
    show: ({ queue, series }) => ({
      value: count(queue.blocked),
      note: `last used ${span(queue.idle_s)} ago`,
      curve: series.values("blocked"),
      curveLabel: "Blocked clients in the last two minutes",
    }),
  },
  { title: "Between nodes", show: ({ queue }) => ({ value: `${rate(queue.imports)}/s`, note: "imported jobs" }) },
];

export class QueueView {
  constructor(histories, report) {
    this.histories = histories;
    this.report = report;
    this.key = null;
    this.last = null;
    this.tiles = new Tiles(byId("queue-tiles"), TILES);
    this.jobs = new JobsView(report);
    this.settings = new SettingsView();
    const figure = (title, text) => ({ title, kind: "number", fill: (cell, row) => setText(cell, text(row)) });
    this.members = new Rows(byId("queue-members"), "The queue on each member", [
      { title: "Member", head: true, fill: (cell, row) => setText(cell, row.name) },
      figure("Queued", (row) => count(row.len)),
      figure("In per second", (row) => rate(row.in_per_s)),
      figure("Out per second", (row) => rate(row.out_per_s)),
      figure("Imported per second", (row) => rate(row.imports)),
      figure("Blocked clients", (row) => count(row.blocked)),
      { title: "Pause", fill: (cell, row) => setText(cell, PAUSES[row.pause] ?? "–") },
      { title: "Clients wait for", fill: (cell, row) => setText(cell, LIMITS[row.limited] ?? "–") },
    ]);
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
    this.settings.open(key);
    byId("queue-title").focus();
  }

  close() {
    this.key = null;
    this.jobs.open(null);
    this.settings.open(null);
  }

  show(update) {
    if (this.key === null) return;
    const queue = update.opened;
    byId("queue-tiles").hidden = queue === null;
    byId("pausing").hidden = !update.actions || queue === null;
    byId("queue-spread").hidden = update.known_members === 1 || queue === null;
    const names = new Map(update.members.map((member) => [member.id, nameOf(member)]));
    const rows = update.opened_at.map((row) => ({ ...row, name: names.get(row.id) ?? row.id.slice(0, 8) }));
    this.members.show(rows, (row) => row.id);
    this.jobs.allow(update.actions);
    if (queue === null) {
      this.setTitle(this.last?.shown ?? decodeKey(this.key));
      setText(byId("queue-note"), GONE);
      return;
    }
    this.last = queue;
    this.setTitle(queue.shown || "(no name)", PAUSES[queue.pause] ?? LIMITS[queue.limited]);
    setText(byId("queue-note"), update.actions ? "" : "Read-only: actions are disabled on this node (http-actions).");
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
    if (!(await confirmed(`${verb}: ${name}`, `${text} This applies to ${where}.`, verb))) return;
    const action = { action: "pause", queue: this.key, pause: state, everywhere };
    await this.report(() => act(action), () => "Done.");
  }
}

function decodeKey(key) {
  try {
    return decodeURIComponent(key);
  } catch {
    return key; // the name is not valid UTF-8
  }
}
