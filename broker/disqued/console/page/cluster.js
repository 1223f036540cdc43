// The cluster: sums over all members that answer, and the members.

import { Rows, byId, chip, el, setText } from "./dom.js";
import { bytes, count, rate, span } from "./format.js";
import { Series } from "./history.js";
import { Tiles } from "./tiles.js";

const FLAGS = {
  "fail?": ["suspected", "warn"],
  fail: ["failed", "bad"],
  handshake: ["handshake", "warn"],
  noaddr: ["unknown address", "warn"],
  leaving: ["leaving", "warn"],
};
const ANSWERS = {
  silent: ["no answer", "bad"],
  refuses: ["no permission", "warn"],
  unsupported: ["not asked", ""],
};
const MEMORY_TONES = ["", "warn", "bad", "bad"];
const MINUTES = "in the last two minutes";

const TILES = [
  {
    title: "Queued jobs",
    show: ({ totals, series }) => ({
      value: count(totals.queued_jobs),
      note: `of ${count(totals.registered_jobs)} jobs and copies`,
      curve: series.values("queued_jobs"),
      curveLabel: `Queued jobs of the cluster ${MINUTES}`,
    }),
  },
  {
    title: "Requests per second",
    show: ({ totals, series }) => ({
      value: rate(totals.requests_per_s),
      note: "of all members",
      curve: series.values("requests_per_s"),
      curveLabel: `Requests per second of the cluster ${MINUTES}`,
    }),
  },
  {
    title: "Clients",
    show: ({ totals, series }) => ({
      value: count(totals.connected_clients),
      note: `${count(totals.blocked_clients)} blocked`,
      curve: series.values("connected_clients"),
      curveLabel: `Clients of the cluster ${MINUTES}`,
    }),
  },
  {
    title: "Memory",
    show: ({ totals, members, series }) => {
      const level = Math.max(0, ...members.map(({ figures }) => figures.memory_level ?? 0));
      const full = members.filter(({ figures }) => figures.memory_level === level).length;
      return {
        value: bytes(totals.used_memory),
        note: level ? `${count(full)} above ${level > 1 ? 95 : 75} %` : totals.maxmemory ? `of ${bytes(totals.maxmemory)}` : "no limit",
        tone: MEMORY_TONES[level],
        curve: series.values("used_memory"),
        curveLabel: `Memory of the cluster ${MINUTES}`,
      };
    },
  },
  {
    title: "Members",
    show: ({ totals, known, members }) => {
      const failing = members.filter((member) => problemOf(member)).length;
      const silent = totals.asked - totals.answering;
      const notes = [failing ? `${failing} with problems` : "all connected"];
      if (silent) notes.push(`sums without ${silent}`);
      return { value: `${count(totals.answering)} of ${count(known)}`, note: notes.join(", "), tone: failing || silent ? "warn" : "" };
    },
  },
  {
    title: "Drains",
    show: ({ totals, members }) => {
      const leaving = members.filter((member) => member.flags.includes("leaving") || member.figures.leaving_done).length;
      return { value: count(leaving), note: leaving ? `${count(totals.leaving_jobs_left)} jobs left` : "no member is leaving" };
    },
  },
];

export function nameOf(member) {
  return member.address.replace(/^:/, "this host:") + (member.myself ? " (this node)" : "");
}

function problemOf(member) {
  return member.flags.some((flag) => flag !== "leaving") || (!member.myself && !member.connected);
}

function stateOf(member) {
  const { figures } = member;
  const chips = member.flags.map((flag) => chip(...(FLAGS[flag] ?? [flag, "warn"])));
  if (figures.leaving_done && !member.flags.includes("leaving")) chips.push(chip("leaving", "warn"));
  if (!member.myself && !member.connected) chips.push(chip("no connection", "bad"));
  else if (ANSWERS[member.answer]) chips.push(chip(...ANSWERS[member.answer]));
  if (figures.loading) chips.push(chip("loading", "warn"));
  if (figures.aof_refusing) chips.push(chip("refusing new jobs", "bad"));
  if (!chips.length) chips.push(chip("member", "good"));
  return chips.flatMap((one) => [one, " "]);
}

function drainOf({ figures }) {
  if (figures.leaving_done === undefined) return "";
  if (figures.leaving_done === "yes") return "drained";
  const left = `${count(figures.leaving_jobs_left)} jobs left`;
  const time = figures.leaving_seconds_left === undefined ? "" : `, ${span(figures.leaving_seconds_left)}`;
  return `${left}, ${rate(figures.leaving_rate)}/s${time}`;
}

function memoryOf({ figures }) {
  if (!figures.maxmemory) return bytes(figures.used_memory);
  return `${bytes(figures.used_memory)} (${((100 * figures.used_memory) / figures.maxmemory).toFixed(0)} %)`;
}

export class ClusterView {
  constructor() {
    this.series = new Series();
    this.tiles = new Tiles(byId("cluster-tiles"), TILES);
    const figure = (title, text) => ({ title, kind: "number", fill: (cell, member) => setText(cell, text(member)) });
    this.members = new Rows(byId("members"), "Members of the cluster, as seen by this node", [
      { title: "Member", head: true, fill: (cell, member) => this.fillName(cell, member) },
      { title: "State", fill: (cell, member) => this.fillState(cell, member) },
      figure("Queued", ({ figures }) => count(figures.queued_jobs)),
      figure("Jobs", ({ figures }) => count(figures.registered_jobs)),
      figure("Memory", memoryOf),
      figure("Clients", ({ figures }) => count(figures.connected_clients)),
      figure("Version", ({ figures }) => figures.disqued_version ?? "–"),
      figure("Up", ({ figures }) => span(figures.uptime_in_seconds)),
    ]);
  }

  fillName(cell, member) {
    if (!cell.firstChild) cell.append(el("span"), " ", el("span", { class: "quiet mono", title: member.id }, member.id.slice(0, 8)));
    setText(cell.firstChild, nameOf(member));
  }

  fillState(cell, member) {
    const drain = drainOf(member);
    cell.replaceChildren(...stateOf(member), ...(drain ? [el("span", { class: "quiet" }, drain)] : []));
    cell.title = member.why;
  }

  add({ now_ms, totals }) {
    this.series.add(now_ms, { ...totals, requests_per_s: totals.requests_per_s ?? 0 }, []);
  }

  show({ totals, members, known_members: known }) {
    this.tiles.fill({ totals, members, known, series: this.series });
    const hidden = known - members.length;
    setText(byId("cluster-note"), hidden > 0 ? `${count(hidden)} not shown` : "");
    this.members.show(members, (member) => member.id);
  }
}
