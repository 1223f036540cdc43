// One job, found by its ID: as this node has it, or how it ended, and its progress log.

import { Refused, getGraph, getJob } from "./api.js";
import { Rows, byId, setText } from "./dom.js";
import { bytes, count } from "./format.js";
import { drawGraph } from "./graph.js";
import { jobFacts, showFacts } from "./jobrows.js";

const MOST_SHOWN = 2048;
const ENDS = {
  done: "This job is done: a worker acknowledged it.",
  dead: "This job failed and became a dead letter, or was dropped.",
  moved: "This job was moved, and no node that answers knows its successor.",
  expired: "This job expired: it was not acknowledged within its time to live.",
  deleted: "This job was deleted.",
};
const UNKNOWN = "No node that answers knows this job: it ended without a record, or never existed.";
const ELSEWHERE = "This job has not ended. This node has no copy of it.";
const HERE = "This job has not ended.";

function time(unix_ms) {
  return unix_ms === null ? "unknown" : new Date(unix_ms).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

function endFacts(id, end) {
  const cut = end.result_bytes > MOST_SHOWN ? ", only the first 2 KB are shown" : "";
  const binary = end.is_text ? "" : ", binary: bytes are shown as \\x..";
  return {
    ID: id,
    Outcome: end.outcome,
    Ended: time(end.ended_ms),
    ...(end.claim && { Claim: end.claim }),
    Result: end.result_bytes === null ? "none" : `${bytes(end.result_bytes)}${cut}${binary}`,
  };
}

export class JobView {
  constructor() {
    this.asked = 0;
    this.id = null;
    this.denied = false;
    this.log = new Rows(byId("job-log"), "Progress log of this job", [
      { title: "Time", head: true, fill: (cell, row) => setText(cell, time(row.at_ms)) },
      { title: "Claim", fill: (cell, row) => setText(cell, row.claim || "–") },
      { title: "Number", kind: "number", fill: (cell, row) => setText(cell, count(row.seq)) },
      { title: "Entry", fill: (cell, row) => setText(cell, row.entry) },
    ]);
    byId("job-refresh").addEventListener("click", () => this.load());
  }

  open(id) {
    this.id = id;
    setText(byId("job-title"), `Job ${id}`);
    this.show({ job: null, end: null, log: [], entries: 0 }, "Loading…");
    byId("job-title").focus();
    this.load();
  }

  close() {
    this.id = null;
  }

  // The page has a password now.
  take() {
    if (this.id !== null && this.denied) this.load();
  }

  async load() {
    this.denied = false;
    this.asked += 1;
    const [asked, id] = [this.asked, this.id];
    try {
      const found = await getJob(id);
      if (asked !== this.asked || id !== this.id) return;
      const open = found.job ? HERE : found.is_known ? ELSEWHERE : UNKNOWN;
      this.show(found, found.end ? ENDS[found.end.outcome] : open);
      if (found.job?.parents || found.job?.children) await this.showGraph(id);
    } catch (error) {
      if (asked !== this.asked) return;
      this.denied = error instanceof Refused && error.status === 401;
      setText(byId("job-note"), error.message);
    }
  }

  show(found, note) {
    const { job, end } = found;
    setText(byId("job-note"), note);
    showFacts({ facts: byId("job-facts") }, end ? endFacts(this.id, end) : job ? { Queue: job.queue_shown, ...jobFacts(job) } : {});
    const text = end ? end.result : job ? job.body : "";
    byId("job-text").setAttribute("aria-label", end ? "Result" : "Body");
    setText(byId("job-text"), text);
    byId("job-text").hidden = !text;
    byId("job-graph").hidden = true;
    byId("job-log-part").hidden = !found.log.length;
    setText(byId("job-log-note"), found.entries > found.log.length ? `The last ${found.log.length} of ${count(found.entries)}.` : "");
    this.log.show(found.log, (row) => `${row.claim}/${row.seq}`);
  }

  async showGraph(id) {
    const graph = await getGraph(id);
    if (id !== this.id) return;
    drawGraph(byId("job-graph"), graph);
    byId("job-graph").hidden = false;
  }
}
