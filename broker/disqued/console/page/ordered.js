// The ordered queues of the cluster: leader, replicas, how far they are behind, and the jobs.

import { getOrdered } from "./api.js";
import { Rows, byId, chip, setText } from "./dom.js";
import { count } from "./format.js";

const POLL_MS = 2000;

export class OrderedView {
  constructor() {
    this.isOpen = false;
    this.asked = 0;
    this.rows = new Rows(byId("ordered-table"), "Ordered queues", [
      { title: "Queue", head: true, fill: (cell, row) => fillName(cell, row) },
      { title: "Leader", fill: (cell, row) => fillLeader(cell, row) },
      { title: "Replicas", fill: (cell, row) => fillReplicas(cell, row) },
      { title: "Lag", kind: "number", fill: (cell, row) => setText(cell, count(row.lag)) },
      { title: "Ready", kind: "number", fill: (cell, row) => setText(cell, count(row.ready)) },
      { title: "Leased", kind: "number", fill: (cell, row) => setText(cell, count(row.leased)) },
      { title: "Delayed", kind: "number", fill: (cell, row) => setText(cell, count(row.delayed)) },
      { title: "Dead", kind: "number", fill: (cell, row) => setText(cell, count(row.dead)) },
      { title: "Consumers", kind: "number", fill: (cell, row) => setText(cell, count(row.consumers)) },
    ]);
  }

  open() {
    if (this.isOpen) return;
    this.isOpen = true;
    byId("ordered-title").focus();
    setText(byId("ordered-note"), "Loading…");
    this.follow();
  }

  close() {
    this.isOpen = false;
    this.asked += 1;
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
      const reply = await getOrdered();
      if (asked === this.asked) this.show(reply);
    } catch (error) {
      if (asked === this.asked) setText(byId("ordered-note"), error.message);
    }
  }

  show(reply) {
    this.rows.show(reply.queues, (row) => row.queue);
    byId("ordered-table").hidden = !reply.queues.length;
    setText(byId("ordered-note"), noteOf(reply));
  }
}

function noteOf(reply) {
  if (!reply.catalog) return "This cluster has no ordered queues: CLUSTER ORDERED INIT founds their catalog.";
  const words = [reply.count === 1 ? "1 ordered queue." : `${count(reply.count)} ordered queues.`];
  if (reply.count > reply.queues.length) words.push(`The first ${count(reply.queues.length)} by name are shown.`);
  if (reply.conflict) words.push("Another member has another catalog of ordered queues.");
  if (reply.error) words.push(`This node cannot write its log of ordered queues: ${reply.error}.`);
  return words.join(" ");
}

function fillName(cell, row) {
  if (cell.dataset.shown === `${row.shown}${row.single}${row.pause}`) return;
  cell.dataset.shown = `${row.shown}${row.single}${row.pause}`;
  cell.replaceChildren(row.shown);
  if (row.single) cell.append(" ", chip("single"));
  if (row.pause && row.pause !== "none") cell.append(" ", chip(`paused: ${row.pause}`, "warn"));
}

function fillLeader(cell, row) {
  const shown = row.leader_address || "no leader";
  if (cell.textContent === shown) return;
  cell.replaceChildren(row.leader_address || chip("no leader", "bad"));
}

function fillReplicas(cell, row) {
  const shown = `${row.replicas.length}${row.settled ? "" : " moving"}`;
  cell.title = row.replicas.join("\n");
  if (cell.textContent === shown) return;
  cell.replaceChildren(String(row.replicas.length));
  if (!row.settled) cell.append(" ", chip("moving", "warn"));
}
