// The console: keeps the connection to the node, and shows the cluster in the view that the URL selects.

import { Refused, listen, setPassword } from "./api.js";
import { ClusterView } from "./cluster.js";
import { DeadView } from "./dead.js";
import { askPassword } from "./dialogs.js";
import { byId, setText } from "./dom.js";
import { Histories } from "./history.js";
import { JobView } from "./job.js";
import { NodeView } from "./node.js";
import { OrderedView } from "./ordered.js";
import { QueueView } from "./queue.js";
import { QueuesView } from "./queues.js";
import { SchedulesView } from "./schedules.js";
import { startTheme } from "./theme.js";

const MOST = 50;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10000;
const TYPING_MS = 300;
const MESSAGE_MS = 6000;
const JOB_ID = /^D-[0-9a-f]{8}-[\w+/]{24}-[0-9a-f]{4}$/;

const histories = new Histories();
const clusterView = new ClusterView();
const nodeView = new NodeView();
const queuesView = new QueuesView(histories);
const queueView = new QueueView(histories, report);
const deadView = new DeadView(report);
const jobView = new JobView();
const schedulesView = new SchedulesView(report);
const orderedView = new OrderedView();

let stop = null;
let paused = false;
let connected = false;
let retry_ms = FIRST_RETRY_MS;
let retry = null;
let message_timer = null;
let noticed_ms = 0;

function showState(state, text) {
  byId("dot").dataset.state = state;
  setText(byId("live"), text);
}

function notice(text) {
  byId("notice").hidden = !text;
  setText(byId("notice"), text);
}

// Runs `work`, and again with another password while the node refuses it and the user enters one.
async function withPassword(work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 401 || !(await login(error.message))) throw error;
    }
  }
}

// Executes an action and shows its result; returns whether it succeeded.
async function report(work, words) {
  clearTimeout(message_timer);
  let done = false;
  try {
    notice("");
    showState("live", words(await withPassword(work)));
    done = true;
    if (!connected) connect();
  } catch (error) {
    notice(error.message);
    noticed_ms = Date.now();
  }
  message_timer = setTimeout(() => connected && showState("live", "Live"), MESSAGE_MS);
  return done;
}

function take(update) {
  connected = true;
  retry_ms = FIRST_RETRY_MS;
  if (Date.now() - noticed_ms > MESSAGE_MS) notice("");
  if (byId("dot").dataset.state !== "live") showState("live", "Live");
  clusterView.add(update);
  nodeView.add(update);
  const queues = new Map(update.queues.map((queue) => [queue.queue, queue]));
  if (update.opened) queues.set(update.opened.queue, update.opened);
  for (const [key, queue] of queues) {
    histories.of(key).add(update.now_ms, { ...queue, in_per_s: queue.in_per_s ?? 0, out_per_s: queue.out_per_s ?? 0 }, []);
  }
  histories.forget(update.now_ms);
  clusterView.show(update);
  nodeView.show(update);
  queuesView.show(update, byId("match").value.trim());
  queueView.show(update);
  deadView.take(update);
  schedulesView.take(update);
  jobView.take();
}

async function login(why) {
  const given = await askPassword(why);
  if (given !== null) setPassword(given);
  return given !== null;
}

// Receives updates until it is stopped, and reconnects when the connection is lost.
async function connect() {
  stop?.abort();
  clearTimeout(retry);
  byId("login").hidden = true;
  if (paused || document.hidden) return;
  stop = new AbortController();
  const { signal } = stop;
  const opened = queueKey();
  const fields = { match: encodeURIComponent(byId("match").value.trim()), sort: byId("sort").value, most: MOST };
  if (opened !== null) fields.queue = opened;
  try {
    await listen(fields, signal, (update) => signal.aborted || take(update));
    if (signal.aborted) return;
    showState("lost", "Connection lost, reconnecting…");
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof Refused && error.status === 401) {
      showState("lost", "Password required");
      connected = false;
      if (await login(error.message)) connect();
      else if (!signal.aborted) byId("login").hidden = false;
      return;
    }
    showState("lost", error instanceof Refused ? "Request refused, retrying…" : "Disconnected, reconnecting…");
    if (error instanceof Refused) notice(error.message);
  }
  connected = false;
  retry = setTimeout(connect, retry_ms);
  retry_ms = Math.min(2 * retry_ms, LAST_RETRY_MS);
}

// The name of the open queue, percent-encoded; other characters in the URL become part of the name.
function queueKey() {
  if (!location.hash.startsWith("#queue=")) return null;
  return location.hash.slice("#queue=".length).replace(/[^\w.~%-]/g, encodeURIComponent);
}

// The ID of the open job.
function jobId() {
  if (!location.hash.startsWith("#job=")) return null;
  try {
    const id = decodeURIComponent(location.hash.slice("#job=".length));
    return JOB_ID.test(id) ? id : null;
  } catch {
    return null;
  }
}

function navigate() {
  const key = queueKey();
  const id = jobId();
  const dead = location.hash === "#dead";
  const schedules = location.hash === "#schedules";
  const ordered = location.hash === "#ordered";
  byId("overview").hidden = dead || schedules || ordered || key !== null || id !== null;
  byId("job").hidden = id === null;
  if (id === null) jobView.close();
  else jobView.open(id);
  byId("queue").hidden = key === null;
  byId("dead").hidden = !dead;
  byId("schedules").hidden = !schedules;
  byId("ordered").hidden = !ordered;
  if (schedules) schedulesView.open();
  else schedulesView.close();
  if (ordered) orderedView.open();
  else orderedView.close();
  if (dead) deadView.open();
  else deadView.close();
  if (key === null) queueView.close();
  else queueView.open(key);
  connect();
}

function setPaused(value) {
  paused = value;
  queueView.jobs.paused = value;
  byId("pause").setAttribute("aria-pressed", String(value));
  if (!value) {
    showState("waiting", "Connecting…");
    connect();
    return;
  }
  stop?.abort();
  clearTimeout(retry);
  showState("waiting", "Updates paused");
}

startTheme(byId("theme"));
byId("pause").addEventListener("click", () => setPaused(!paused));
byId("login").addEventListener("click", connect);
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = byId("match").value.trim();
  if (JOB_ID.test(words)) location.hash = `#job=${encodeURIComponent(words)}`;
  else connect();
});
byId("sort").addEventListener("change", connect);
let typing = null;
byId("match").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(connect, TYPING_MS);
});
addEventListener("hashchange", navigate);
document.addEventListener("visibilitychange", () => (document.hidden ? stop?.abort() : connect()));
navigate();
