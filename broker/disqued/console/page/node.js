// This node and the others of its cluster.

import { Rows, byId, chip, setText } from "./dom.js";
import { bytes, count, rate, span } from "./format.js";
import { Series } from "./history.js";
import { Tiles } from "./tiles.js";

const COUNTERS = ["total_commands_processed", "total_net_input_bytes", "total_net_output_bytes"];
const LEVELS = [
  { note: "enough" },
  { note: "above 75 %: new jobs are kept by other nodes", tone: "warn" },
  { note: "above 95 %: what may be forgotten is", tone: "bad" },
  { note: "full: new jobs are refused", tone: "bad" },
];
const FLAGS = {
  "fail?": ["does not answer", "warn"],
  fail: ["failed", "bad"],
  handshake: ["is being met", "warn"],
  noaddr: ["address unknown", "warn"],
  leaving: ["is leaving", "warn"],
};

const TILES = [
  {
    title: "Waiting jobs",
    show: ({ figures, series }) => ({
      value: count(figures.queued_jobs),
      note: `of ${count(figures.registered_jobs)} on this node`,
      curve: series.values("queued_jobs"),
      curveLabel: "Waiting jobs in the last two minutes",
    }),
  },
  {
    title: "Requests per second",
    show: ({ series }) => ({
      value: rate(series.rate("total_commands_processed")),
      note: ["input", "output"].map((way) => `${bytes(series.rate(`total_net_${way}_bytes`))}/s ${way}`).join(", "),
      curve: series.rates("total_commands_processed"),
      curveLabel: "Requests per second in the last two minutes",
    }),
  },
  {
    title: "Clients",
    show: ({ figures, series }) => ({
      value: count(figures.connected_clients),
      note: `${count(figures.blocked_clients)} wait for jobs`,
      curve: series.values("connected_clients"),
      curveLabel: "Clients in the last two minutes",
    }),
  },
  {
    title: "Memory",
    show: ({ figures, series }) => {
      const level = LEVELS[figures.memory_level] ?? LEVELS[0];
      const percent = ((100 * figures.used_memory) / figures.maxmemory).toFixed(1);
      const share = figures.maxmemory ? `${percent} % of ${bytes(figures.maxmemory)}` : "no limit";
      return {
        value: bytes(figures.used_memory),
        note: level.tone ? `${share}, ${level.note}` : share,
        tone: level.tone,
        curve: series.values("used_memory"),
        curveLabel: "Memory in the last two minutes",
      };
    },
  },
  {
    title: "Disk",
    show: ({ figures }) => {
      if (figures.aof_refusing || figures.aof_last_write_status === "err") {
        const why = figures.aof_refusing || "the log of the server says why";
        return { value: "fails", note: `new jobs are refused: ${why}`, tone: "bad" };
      }
      if (!figures.aof_enabled) return { value: "not used", note: "jobs are in memory only (appendonly no)" };
      return { value: bytes(figures.aof_current_size), note: "append only file" };
    },
  },
  {
    title: "Other nodes",
    show: ({ figures }) => ({
      value: `${count(figures.jobs_imported)} in, ${count(figures.jobs_exported)} out`,
      note: `jobs that moved; ${count(figures.jobs_waiting_for_copies)} wait for copies`,
    }),
  },
];

function nameOf(member) {
  return member.address.replace(/^:/, "this host:") + (member.myself ? " (this node)" : "");
}

function stateOf(member) {
  if (!member.flags.length) return [chip("member", "good")];
  return member.flags.map((flag) => chip(...(FLAGS[flag] ?? [flag, "warn"])));
}

function linkOf(member) {
  if (member.myself) return "–";
  return member.connected ? chip("connected", "good") : chip("down", "bad");
}

export class NodeView {
  constructor() {
    this.series = new Series();
    this.tiles = new Tiles(byId("tiles"), TILES);
    this.members = new Rows(byId("members"), "The nodes of the cluster as this one sees them", [
      { title: "Node", head: true, fill: (cell, member) => setText(cell, nameOf(member)) },
      { title: "State", fill: (cell, member) => cell.replaceChildren(...stateOf(member)) },
      { title: "Link", fill: (cell, member) => cell.replaceChildren(linkOf(member)) },
      { title: "ID", kind: "wide mono", fill: (cell, member) => setText(cell, member.id) },
    ]);
  }

  add(said) {
    if (said.figures.total_commands_processed !== undefined) this.series.add(said.now_ms, said.figures, COUNTERS);
  }

  show(said) {
    const { figures, members } = said;
    const me = members.find((member) => member.myself);
    const known = me?.address ?? `:${figures.tcp_port ?? ""}`;
    const address = known.replace(/^:/, `${location.hostname}:`);
    setText(byId("address"), address);
    const version = figures.disqued_version ?? "";
    setText(byId("version"), `${said.node.slice(0, 8)} · ${version} · up ${span(figures.uptime_in_seconds)}`);
    document.title = `${address} · Disque`;
    const chips = [];
    if (figures.loading) chips.push(chip("loads its jobs", "warn"));
    if (said.leaving) chips.push(chip("leaves the cluster", "warn"));
    if (figures.aof_refusing) chips.push(chip("refuses new jobs", "bad"));
    chips.push(chip(said.actions ? "actions on" : "read only"));
    byId("chips").replaceChildren(...chips);
    this.tiles.fill({ figures, series: this.series });
    const troubled = members.filter((member) => !member.myself && (member.flags.length || !member.connected)).length;
    const hidden = said.known_members - members.length;
    const notes = [said.known_members === 1 ? "1 node" : `${count(said.known_members)} nodes`];
    if (hidden > 0) notes.push(`${hidden} of them not shown`);
    if (troubled) notes.push(`${troubled} in trouble`);
    setText(byId("cluster-note"), notes.join(", "));
    this.members.show(members, (member) => member.id);
  }
}
