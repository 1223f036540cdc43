// The graph of a job: the jobs it waits for to its left, those that wait for it to its right.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 160;
const HEIGHT = 40;
const GAP_X = 42;
const GAP_Y = 12;
const MARGIN = 3;
const MOST_LETTERS = 17;
const TONES = { done: "good", held: "warn", dead: "bad", expired: "bad", deleted: "bad", unknown: "bad" };
const STATES = { held: "waits for others", active: "active", "wait-repl": "waits for copies", moved: "moved" };

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Where each job stands, by ID, and the size of the picture.
function places(jobs) {
  const first = Math.min(...jobs.map((job) => job.column));
  const used = new Map();
  const at = new Map();
  for (const job of jobs) {
    const column = job.column - first;
    const row = used.get(column) ?? 0;
    used.set(column, row + 1);
    at.set(job.id, { column, row });
  }
  const rows = Math.max(...used.values());
  for (const place of at.values()) {
    place.x = MARGIN + place.column * (WIDTH + GAP_X);
    place.y = MARGIN + (place.row + (rows - used.get(place.column)) / 2) * (HEIGHT + GAP_Y);
  }
  const columns = Math.max(...used.keys()) + 1;
  const width = columns * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN;
  return { at, width, height: rows * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN };
}

function short(text) {
  return text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text;
}

function box(job, place, parents) {
  const state = STATES[job.state] ?? job.state;
  const name = job.queue || job.id.slice(0, MOST_LETTERS);
  const label = `${job.queue ? `queue ${job.queue}, ` : ""}${state}, job ${job.id}`
    + (parents.length ? `, after ${parents.join(" and ")}` : "");
  return svg(
    "a",
    {
      class: "node",
      href: `#job=${encodeURIComponent(job.id)}`,
      "data-tone": TONES[job.state] ?? "",
      "data-relation": job.relation,
      "aria-label": label,
    },
    svg("title", {}, label),
    svg("rect", { x: place.x, y: place.y, width: WIDTH, height: HEIGHT, rx: 8 }),
    svg("text", { x: place.x + 10, y: place.y + 17, class: "name" }, short(name)),
    svg("text", { x: place.x + 10, y: place.y + 32, class: "state" }, state),
  );
}

function edge(from, to) {
  const [x, y] = [from.x + WIDTH, from.y + HEIGHT / 2];
  const [end, low] = [to.x, to.y + HEIGHT / 2];
  const half = (x + end) / 2;
  return svg("path", { class: "edge", d: `M${x} ${y}C${half} ${y} ${half} ${low} ${end} ${low}` });
}

// Fills the holder with the graph, unless it shows this graph already.
export function drawGraph(holder, graph) {
  const drawn = JSON.stringify(graph);
  if (holder.dataset.drawn === drawn) return;
  holder.dataset.drawn = drawn;
  const { at, width, height } = places(graph.jobs);
  const nameOf = new Map(graph.jobs.map((job) => [job.id, job.queue || job.id.slice(0, MOST_LETTERS)]));
  const parentsOf = (id) => graph.edges.filter(([, child]) => child === id).map(([parent]) => nameOf.get(parent));
  const label = `Graph of ${graph.jobs.length} jobs, parents to the left of their children`;
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label },
    ...graph.edges.map(([parent, child]) => edge(at.get(parent), at.get(child))),
    ...graph.jobs.map((job) => box(job, at.get(job.id), parentsOf(job.id))),
  );
  holder.replaceChildren(picture);
  if (!graph.left) return;
  const more = document.createElement("p");
  more.className = "quiet";
  more.textContent = `${graph.left} more jobs are not drawn.`;
  holder.append(more);
}
