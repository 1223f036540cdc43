// Requests to the node. The password is kept only in memory, so a reload asks for it again.

let password = null;

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export function setPassword(text) {
  password = text;
}

function headers(more = {}) {
  if (password === null) return more;
  const raw = new TextEncoder().encode(`default:${password}`);
  return { ...more, Authorization: `Basic ${btoa(String.fromCharCode(...raw))}` };
}

async function ask(path, options = {}) {
  const always = { cache: "no-store", credentials: "omit", headers: headers(options.headers) };
  const reply = await fetch(path, { ...options, ...always });
  if (!reply.ok) throw new Refused(reply.status, (await reply.text()).trim());
  return reply;
}

// Builds a query string. Names of queues are already percent-encoded.
export function query(fields) {
  return Object.entries(fields).map(([name, value]) => `${name}=${value}`).join("&");
}

export async function getJobs(fields) {
  return (await ask(`console/jobs?${query(fields)}`)).json();
}

export async function getJob(id) {
  return (await ask(`console/job?${query({ job: encodeURIComponent(id) })}`)).json();
}

export async function getGraph(id) {
  return (await ask(`console/graph?${query({ job: encodeURIComponent(id) })}`)).json();
}

export async function getSettings(fields) {
  return (await ask(`console/settings?${query(fields)}`)).json();
}

export async function getRedrive(fields) {
  return (await ask(`console/redrive?${query(fields)}`)).json();
}

export async function getSchedules() {
  return (await ask("console/schedules")).json();
}

export async function getOrdered() {
  return (await ask("console/ordered")).json();
}

export async function act(action) {
  const own = { "Content-Type": "application/json", "X-Disque-Console": "1" };
  return (await ask("console/act", { method: "POST", body: JSON.stringify(action), headers: own })).json();
}

// Calls `onState` with each state of the node, until the connection ends or `signal` aborts.
export async function listen(fields, signal, onState) {
  const reply = await ask(`console/events?${query(fields)}`, { signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) onState(JSON.parse(data.slice(6)));
    }
  }
}
