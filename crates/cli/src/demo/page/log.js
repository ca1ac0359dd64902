// The event log: the lines of `replay`, to the letter. The last one is what would end the run now.
//
// All lines are kept, the newest few hundred are shown.

const SHOWN = 300;

export class Log {
  constructor(list, end) {
    this.list = list;
    this.end = end;
    this.lines = [];
  }

  clear() {
    this.lines = [];
    this.list.replaceChildren();
  }

  // Adds lines as the server sent them. Returns them read, unless they are too many to look at.
  add(text, done) {
    const lines = text.split("\n").filter(Boolean);
    for (const line of lines) this.lines.push(line);
    const read = lines.slice(-SHOWN).map((line) => ({ line, ...JSON.parse(line) }));
    const items = read.map(({ line, event }) => {
      const item = document.createElement("li");
      item.className = event;
      item.textContent = line;
      return item;
    });
    this.list.append(...items);
    while (this.list.childElementCount > SHOWN) this.list.firstElementChild.remove();
    this.end.textContent = done.trim();
    if (items.length) this.list.parentElement.scrollTop = this.list.parentElement.scrollHeight;
    return lines.length > SHOWN ? [] : read;
  }
}
