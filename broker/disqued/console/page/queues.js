// The list of queues: the longest ones, or those whose names match.

import { Rows, byId, chip, el, setText } from "./dom.js";
import { count, rate, span } from "./format.js";
import { drawSpark } from "./spark.js";

const PAUSES = { in: "input paused", out: "output paused", all: "paused" };

export class QueuesView {
  constructor(histories) {
    const speed = (queue, counter) => rate(histories.of(queue.queue).rate(counter));
    this.rows = new Rows(byId("queues"), "Queues of this node", [
      { title: "Queue", head: true, fill: (cell, queue) => this.fillName(cell, queue) },
      { title: "Queued", kind: "number", fill: (cell, queue) => setText(cell, count(queue.len)) },
      {
        title: "Last two minutes",
        kind: "spark",
        fill: (cell, queue) => {
          const label = `Queued jobs of ${queue.shown} in the last two minutes`;
          drawSpark(cell, histories.of(queue.queue).values("len"), label);
        },
      },
      { title: "In per second", kind: "number", fill: (cell, queue) => setText(cell, speed(queue, "jobs_in")) },
      { title: "Out per second", kind: "number", fill: (cell, queue) => setText(cell, speed(queue, "jobs_out")) },
      { title: "Blocked clients", kind: "number", fill: (cell, queue) => setText(cell, count(queue.blocked)) },
      { title: "Idle", kind: "number", fill: (cell, queue) => setText(cell, span(queue.idle_s)) },
    ]);
  }

  fillName(cell, queue) {
    if (!cell.firstChild) {
      const link = el("a", { href: `#queue=${queue.queue}` }, queue.shown || "(no name)");
      cell.append(link, " ", el("span"));
    }
    const mark = cell.lastChild;
    const text = PAUSES[queue.pause] ?? "";
    if (mark.textContent !== text) mark.replaceChildren(...(text ? [chip(text, "warn")] : []));
  }

  show(update, search) {
    const known = update.figures.registered_queues ?? 0;
    const shown = update.queues.length;
    let note = "";
    if (update.figures.loading) note = "The node is loading its jobs; queues are shown afterwards.";
    else if (!shown && !update.complete) note = "Loading…";
    else if (!shown) note = search ? "No queue matches." : "No queues on this node.";
    else if (shown < known) note = `${count(shown)} of ${count(known)} queues${update.complete ? "" : ", still scanning"}`;
    setText(byId("queues-note"), note);
    byId("queues").hidden = !shown;
    this.rows.show(update.queues, (queue) => queue.queue);
  }
}
