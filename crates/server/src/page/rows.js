// DOM helpers. Text from users is inserted as text, never as markup.

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Writes only differences: a table that is refreshed ten times a minute is mostly unchanged.
export function put(element, text) {
  if (element.textContent !== `${text}`) element.textContent = text;
}

// The rows of a table, one for each key. A row is kept while its key is present, so that focus and selection stay.
export class Rows {
  #known = new Map();

  // `build` creates a row with its cells; `write` writes an item into it.
  constructor(body, build, write) {
    Object.assign(this, { body, build, write });
  }

  show(items, keyOf) {
    const seen = new Set();
    let at = this.body.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      seen.add(key);
      let row = this.#known.get(key);
      if (!row) this.#known.set(key, (row = this.build(item)));
      this.write(row, item);
      if (row === at) at = at.nextElementSibling;
      else this.body.insertBefore(row, at);
    }
    for (const [key, row] of this.#known) {
      if (seen.has(key)) continue;
      row.remove();
      this.#known.delete(key);
    }
  }
}
