// A sparkline of recent values, with a text label.

import { KEPT } from "./history.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = KEPT;
const HEIGHT = 24;

export function drawSpark(holder, values, label) {
  let svg = holder.firstElementChild;
  if (!svg) {
    svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    for (const kind of ["area", "line"]) {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("class", kind);
      svg.append(path);
    }
    holder.append(svg);
  }
  const highest = Math.max(...values, 0);
  const scale = highest > 0 ? (HEIGHT - 3) / highest : 0;
  const points = values.map((value, index) => {
    const x = WIDTH - values.length + index + 1;
    return `${x} ${(HEIGHT - 1 - value * scale).toFixed(1)}`;
  });
  const line = points.length > 1 ? `M${points.join("L")}` : "";
  svg.children[1].setAttribute("d", line);
  svg.children[0].setAttribute("d", line ? `${line}L${WIDTH} ${HEIGHT}L${WIDTH - values.length + 1} ${HEIGHT}Z` : "");
  svg.setAttribute("aria-label", label);
}
