// Creates and updates elements. Data from the node is only ever set as text.

export const byId = (id) => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function chip(text, tone = "") {
  return el("span", { class: "chip", "data-tone": tone }, text);
}

// Rows of a table. A row keeps its elements while it shows the same item, so focus and selection are kept.
export class Rows {
  constructor(table, caption, columns) {
    this.columns = columns;
    this.rows = new Map();
    this.body = el("tbody");
    const heads = columns.map((column) => el("th", { scope: "col", class: column.kind ?? "" }, column.title));
    table.replaceChildren(el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), this.body);
  }

  show(items, keyOf) {
    const kept = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const row = this.rows.get(key) ?? this.make(item);
      row.cells.forEach((cell, index) => this.columns[index].fill(cell, item, row));
      kept.set(key, row);
    }
    for (const [key, row] of this.rows) if (!kept.has(key)) this.drop(row);
    this.rows = kept;
    let next = this.body.firstElementChild;
    for (const row of kept.values()) {
      if (row.element === next) next = next.nextElementSibling;
      else this.body.insertBefore(row.element, next);
      if (row.more) {
        if (row.more === next) next = next.nextElementSibling;
        else this.body.insertBefore(row.more, next);
      }
    }
  }

  make(item) {
    const row = { more: null, item };
    row.cells = this.columns.map((column, index) => {
      const label = index === 0 || column.kind === "spark" ? null : column.title;
      const attributes = { "data-label": label, class: column.kind ?? "", scope: column.head ? "row" : null };
      return el(column.head ? "th" : "td", attributes);
    });
    row.element = el("tr", {}, ...row.cells);
    return row;
  }

  drop(row) {
    row.element.remove();
    row.more?.remove();
  }
}
