// Tiles with a title, a value, a note, and optionally a sparkline.

import { el, setText } from "./dom.js";
import { drawSpark } from "./spark.js";

export class Tiles {
  // Each of `tiles`: { title, show(data) -> { value, note, tone, curve, curveLabel } }
  constructor(holder, tiles) {
    this.tiles = tiles.map((tile) => {
      const parts = {
        title: el("span", { class: "quiet" }, tile.title),
        value: el("span", { class: "value" }),
        note: el("span", { class: "quiet" }),
        spark: el("span", { class: "spark" }),
      };
      const element = el("div", { class: "tile" }, parts.title, parts.value, parts.note, parts.spark);
      return { ...tile, ...parts, element };
    });
    holder.replaceChildren(...this.tiles.map((tile) => tile.element));
  }

  fill(data) {
    for (const tile of this.tiles) {
      const { value, note = "", tone = "", curve = null, curveLabel = "" } = tile.show(data);
      setText(tile.value, value);
      setText(tile.note, note);
      tile.element.dataset.tone = tone;
      if (curve) drawSpark(tile.spark, curve, curveLabel);
    }
  }
}
