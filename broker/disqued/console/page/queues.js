// The list of queues: the longest ones, or those whose names match.

import { Rows, byId, chip, el, setText } from "./dom.js";
import { count, rate, span } from "./format.js";
import { drawSpark } from "./spark.js";

export const LIMITS = {
  rate: "held back: rate",
  inflight: "held back: in flight",
  home: "held back: no answer about the rate",
};
export const PAUSES = { in: "input paused", out: "output paused", all: "paused", different: "paused on some members" };

export class QueuesView {
  constructor(histories) {
    this.rows = new Rows(byId("queues"), "Queues of the cluster", [
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
      { title: "In per second", kind: "number", fill: (cell, queue) => setText(cell, rate(queue.in_per_s)) },
      { title: "Out per second", kind: "number", fill: (cell, queue) => setText(cell, rate(queue.out_per_s)) },
      { title: "Dead", kind: "number", fill: (cell, queue) => setText(cell, count(queue.dead)) },
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
    const text = PAUSES[queue.pause] ?? LIMITS[queue.limited] ?? "";
    if (mark.textContent !== text) mark.replaceChildren(...(text ? [chip(text, "warn")] : []));
  }

  show(update, search) {
    const known = update.totals.registered_queues;
    const silent = update.totals.asked - update.totals.answering;
    const shown = update.queues.length;
    let note = "";
    if (update.figures.loading) note = "The node is loading its jobs; queues are shown afterwards.";
    else if (!shown && !update.complete) note = "Loading…";
    else if (!shown) note = search ? "No queue matches." : "No queues.";
    else if (shown < known) {
      const least = update.known_members > 1 ? "at least " : "";
      note = `${count(shown)} of ${least}${count(known)} queues${update.complete ? "" : ", still scanning"}`;
    }
    const missing = silent ? `Without ${silent === 1 ? "a member that does" : `${silent} members that do`} not answer.` : "";
    setText(byId("queues-note"), [note, missing].filter(Boolean).join(" "));
    byId("queues").hidden = !shown;
    this.rows.show(update.queues, (queue) => queue.queue);
  }
}
