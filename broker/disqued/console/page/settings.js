// The settings of a queue that are not defaults, and the name or pattern that each comes from.

import { getSettings } from "./api.js";
import { Rows, byId, setText } from "./dom.js";

export class SettingsView {
  constructor() {
    this.asked = 0;
    this.rows = new Rows(byId("settings"), "Settings of this queue", [
      { title: "Setting", head: true, fill: (cell, row) => setText(cell, row.setting) },
      { title: "Value", fill: (cell, row) => setText(cell, row.value) },
      { title: "Set for", fill: (cell, row) => setText(cell, row.source) },
    ]);
  }

  // A node that refuses, because it does not let the user read settings, shows none.
  async open(key) {
    this.asked += 1;
    const asked = this.asked;
    byId("queue-settings").hidden = true;
    if (key === null) return;
    const settings = await getSettings({ queue: key }).then((reply) => reply.settings, () => []);
    if (asked !== this.asked) return;
    this.rows.show(settings, (row) => row.setting);
    byId("queue-settings").hidden = !settings.length;
  }
}
