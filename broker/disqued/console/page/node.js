// The node that serves this page.

import { byId, chip, setText } from "./dom.js";
import { bytes, count, rate, span } from "./format.js";
import { Series } from "./history.js";
import { Tiles } from "./tiles.js";

const COUNTERS = ["total_commands_processed", "total_net_input_bytes", "total_net_output_bytes"];
const LEVELS = [
  { note: "normal" },
  { note: "above 75 %: new jobs are replicated to other nodes only", tone: "warn" },
  { note: "above 95 %: evicting jobs", tone: "bad" },
  { note: "limit reached: new jobs are refused", tone: "bad" },
];
const TILES = [
  {
    title: "Queued jobs",
    show: ({ figures, series }) => ({
      value: count(figures.queued_jobs),
      note: `of ${count(figures.registered_jobs)}`,
      curve: series.values("queued_jobs"),
      curveLabel: "Queued jobs in the last two minutes",
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
      note: `${count(figures.blocked_clients)} blocked`,
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
        const why = figures.aof_refusing || "see the log of the server";
        return { value: "error", note: `new jobs are refused: ${why}`, tone: "bad" };
      }
      if (!figures.aof_enabled) return { value: "not used", note: "jobs are kept in memory only (appendonly no)" };
      return { value: bytes(figures.aof_current_size), note: "append only file" };
    },
  },
  {
    title: "Other nodes",
    show: ({ figures }) => ({
      value: `${count(figures.jobs_imported)} in, ${count(figures.jobs_exported)} out`,
      note: `jobs imported and exported; ${count(figures.jobs_waiting_for_copies)} waiting for replication`,
    }),
  },
];

export class NodeView {
  constructor() {
    this.series = new Series();
    this.tiles = new Tiles(byId("tiles"), TILES);
  }

  add(update) {
    if (update.figures.total_commands_processed !== undefined) this.series.add(update.now_ms, update.figures, COUNTERS);
  }

  show(update) {
    const { figures, members } = update;
    const me = members.find((member) => member.myself);
    const known = me?.address ?? `:${figures.tcp_port ?? ""}`;
    const address = known.replace(/^:/, `${location.hostname}:`);
    setText(byId("address"), address);
    const version = figures.disqued_version ?? "";
    setText(byId("version"), `${update.node.slice(0, 8)} · ${version} · up ${span(figures.uptime_in_seconds)}`);
    document.title = `${address} · Disque`;
    const chips = [];
    if (figures.loading) chips.push(chip("loading", "warn"));
    if (update.leaving) chips.push(chip("leaving", "warn"));
    if (figures.aof_refusing) chips.push(chip("refusing new jobs", "bad"));
    chips.push(chip(update.actions ? "actions enabled" : "read-only"));
    byId("chips").replaceChildren(...chips);
    this.tiles.fill({ figures, series: this.series });
  }
}
