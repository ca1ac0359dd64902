// The event log: the lines of `replay`, verbatim. The last one is the line that would end the run now.
//
// Shows the newest few hundred; while the clock runs, only a few of them, a few times per second.

const SHOWN = 300;
const RUNNING = 25;

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

  // Adds the lines that the server sent. Returns them parsed, unless there are too many.
  add(text, done) {
    const lines = text.split("\n").filter(Boolean);
    const read = lines.slice(-SHOWN).map((line) => ({ line, ...JSON.parse(line) }));
    for (const one of read) this.lines.push(one);
    if (this.lines.length > 4 * SHOWN) this.lines.splice(0, this.lines.length - SHOWN);
    this.done = done.trim();
    return lines.length > SHOWN ? [] : read;
  }

  write(running) {
    const shown = this.lines.slice(running ? -RUNNING : -SHOWN);
    const [first, last] = [shown[0], shown.at(-1)];
    this.end.textContent = this.done;
    if (this.first === first && this.last === last) return;
    Object.assign(this, { first, last });
    const items = shown.map((one) => {
      if (!one.item) {
        one.item = document.createElement("li");
        one.item.className = one.event;
        one.item.textContent = one.line;
      }
      return one.item;
    });
    this.list.replaceChildren(...items);
    this.list.parentElement.scrollTop = 1e6;
  }
}
