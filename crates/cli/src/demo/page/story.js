// What happened on this page so far: a scenario, as `replay` reads it.
//
// The page owns it and the server keeps nothing of it: a lost connection, a link, another drive and a saved file
// are all made from here. `script` is what a lesson still has in store; it is no part of the scenario.

export class Story {
  constructor({ name, about, wheel, drive, limit, budget, steps = [], script = [], lesson = null }) {
    Object.assign(this, { name, about, wheel, drive, limit, budget, steps, script, lesson });
    this.size = this.scenario().length;
    // Whether the last step must stay as it is. Of steps that came from elsewhere nobody knows.
    this.keep = true;
  }

  // Adds steps that were done. Advances in a row become one where that changes no line: driven by due times, an
  // advance hands down at its end what has begun by then, and says so.
  add(steps, lines) {
    const saysMore = this.drive === "due" && lines.includes('"event":"cascaded"');
    for (const step of steps) {
      const last = this.steps.at(-1);
      if (last && "advance" in last && "advance" in step && !this.keep) this.size -= sizeOf(this.steps.pop());
      this.steps.push(step);
      this.size += sizeOf(step);
      if (step === this.script[0]) this.script.shift();
      this.keep = saysMore;
    }
  }

  // The next moment that the lesson waits for.
  target() {
    const next = this.script[0];
    return next && "advance" in next ? BigInt(next.advance) : null;
  }

  // What the lesson does once the clock is at its target: that advance, and all up to the next one.
  nextOfScript() {
    const end = this.script.findIndex((step, i) => i > 0 && "advance" in step);
    return this.script.slice(0, end < 0 ? this.script.length : end);
  }

  scenario(more = []) {
    const { name, about, wheel, drive, limit, budget, steps } = this;
    return toJson({ name, about, wheel, drive, limit, budget, steps: [...steps, ...more] });
  }

  // The same wheel and the same story, driven differently.
  driven(drive) {
    return new Story({ ...this, drive, steps: [...this.steps], script: [...this.script] });
  }

  async link() {
    const text = toJson({ ...this, keep: undefined, size: undefined });
    return `#${await squeeze(text)}`;
  }

  static async fromLink(hash) {
    const found = fromJson(await unsqueeze(hash.slice(1)));
    // The server judges the steps. The script comes to it later, and its moments are read here.
    const isStep = (step) => typeof step === "object" && /^\d+$/.test(step.advance ?? 0);
    const isList = (list) => Array.isArray(list) && list.every(isStep);
    if (!isList(found.steps) || !isList(found.script)) throw new Error("no story");
    return new Story(found);
  }
}

// What a step adds to the length of the scenario.
const sizeOf = (step) => toJson(step).length + 1;

// JSON whose integers may be BigInt: they are written with all their digits. A BigInt becomes a string with a mark
// that no text on this page contains, and the mark and its quotes are taken off again.
const MARK = "\u0001";
export const toJson = (value) =>
  JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${MARK}${v}` : v))
    .replace(/"\\u0001(-?\d+)"/g, "$1");

// The same the other way: integers that a double cannot hold become BigInt.
export const fromJson = (text) =>
  JSON.parse(text.replace(/([:[,]\s*)(-?\d{16,})(?=\s*[,\]}])/g, `$1"\\u0001$2"`), (_, v) =>
    typeof v === "string" && v.startsWith(MARK) ? BigInt(v.slice(1)) : v);

const MOST = 4 << 20;

async function squeeze(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unsqueeze(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
}

// A link may come from anybody: what does not end is not read to its end.
async function through(stream, bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MOST) throw new Error("too long");
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
