// What the tables of jobs share: selecting a job, and its details, which open below its row.

import { el } from "./dom.js";
import { attempts, bytes, count, span } from "./format.js";

// The view has `chosen` and `details` (sets of job IDs), `allowed`, `select(id, selected)` and `toggle(id)`.
export function fillJob(cell, job, row, view) {
  row.item = job;
  if (!cell.firstChild) {
    const select = () => view.select(job.id, box.checked);
    const box = el("input", { type: "checkbox", "aria-label": `Select job ${job.id}`, onchange: select });
    const expands = { type: "button", class: "link mono", "aria-expanded": "false", title: job.id };
    const toggle = el("button", { ...expands, onclick: () => view.toggle(job.id) }, job.id.slice(0, 18));
    cell.append(el("span", { class: "choice" }, box, " "), toggle);
  }
  cell.firstChild.hidden = !view.allowed;
  cell.querySelector("input").checked = view.chosen.has(job.id);
}

// Whether the details of a row are open. If not, it removes them.
export function isOpen(row, view, id) {
  const open = view.details.has(id);
  row.element.querySelector("button").setAttribute("aria-expanded", String(open));
  if (!open) {
    row.more?.remove();
    row.more = null;
  }
  return open;
}

export function addDetails(row, columns) {
  row.facts = el("dl", { class: "facts" });
  row.body = el("pre", { tabindex: "0", "aria-label": "Body" });
  row.graph = el("div", { class: "jobgraph", hidden: true });
  row.more = el("tr", { class: "more" }, el("td", { colspan: String(columns) }, row.facts, row.graph, row.body));
  row.element.after(row.more);
}

export function showFacts(row, facts) {
  const shown = JSON.stringify(facts);
  if (row.facts.dataset.shown === shown) return;
  row.facts.replaceChildren(...Object.entries(facts).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  row.facts.dataset.shown = shown;
}

export function jobFacts(job) {
  const next = job.next_requeue_ms === null ? "" : `, next in ${span(Math.floor(job.next_requeue_ms / 1000))}`;
  return {
    ID: job.id,
    ...(job.reason_shown && { Reason: job.reason_shown }),
    ...(job.origin_shown && { "Came from": `${job.origin_shown}, after ${attempts(job.attempts_before)}` }),
    Copies: `${job.repl} requested, on ${job.nodes.map((node) => node.slice(0, 8)).join(", ") || "no node"}`,
    ...(job.parents && { "Waits for": `${job.waits_for} of ${count(job.parents)} jobs` }),
    ...(job.children && { "Waiting for it": job.children === 1 ? "1 job" : `${count(job.children)} jobs` }),
    Delay: span(job.delay_s),
    Retry: job.retry_s ? `every ${span(job.retry_s)}${next}` : "never (at most once)",
    Deliveries: `${count(job.nacks)} after NACK, ${count(job.additional_deliveries)} after a timeout`,
    Body: bodyFact(job),
  };
}

export function bodyFact(job) {
  const cut = job.body_bytes > 2048 ? ", only the first 2 KB are shown" : "";
  return `${bytes(job.body_bytes)}${cut}${job.is_text ? "" : ", binary: bytes are shown as \\x.."}`;
}
