// The history of this page as a scenario, in the format of `replay`.
//
// The page owns it and the server keeps none of it. Reconnecting, sharing a link, saving, and changing what drives the
// wheel (tick, slot or due time) all start from it. `script` holds the remaining steps of a lesson; it is not part of
// the scenario.

export class Story {
  constructor({ name, about, wheel, drive, limit, budget, steps = [], script = [], lesson = null }) {
    Object.assign(this, { name, about, wheel, drive, limit, budget, steps, script, lesson });
    this.size = this.scenario().length;
    // Whether later advances must not be merged into the last step. True for a loaded story, whose log lines are
    // unknown.
    this.keep = true;
  }

  // Adds steps that were run. Consecutive advances are merged, unless that would change the log: driven by due time, an
  // advance also cascades at its end, and logs it.
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

  // The advance that the lesson waits for, with the steps after it up to the next advance.
  nextOfScript() {
    const end = this.script.findIndex((step, i) => i > 0 && "advance" in step);
    return this.script.slice(0, end < 0 ? this.script.length : end);
  }

  scenario(more = []) {
    const { name, about, wheel, drive, limit, budget, steps } = this;
    return toJson({ name, about, wheel, drive, limit, budget, steps: [...steps, ...more] });
  }

  // The same wheel and the same story, with another drive.
  driven(drive) {
    return new Story({ ...this, drive, steps: [...this.steps], script: [...this.script] });
  }

  async link() {
    const text = toJson({ ...this, keep: undefined, size: undefined });
    return `#${await squeeze(text)}`;
  }

  static async fromLink(hash) {
    const found = fromJson(await unsqueeze(hash.slice(1)));
    // The server validates the steps. The script is sent later, so its moments are validated here.
    const isStep = (step) => typeof step === "object" && /^\d+$/.test(step.advance ?? 0);
    const isList = (list) => Array.isArray(list) && list.every(isStep);
    if (!isList(found.steps) || !isList(found.script)) throw new Error("no story");
    return new Story(found);
  }
}

// The length that a step adds to the scenario.
const sizeOf = (step) => toJson(step).length + 1;

// JSON whose integers may be BigInt, written with all digits. A BigInt becomes a string with a mark that no text on
// this page contains; the mark and its quotes are then removed.
const MARK = "\u0001";
export const toJson = (value) =>
  JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${MARK}${v}` : v))
    .replace(/"\\u0001(-?\d+)"/g, "$1");

// The inverse: integers that a double cannot hold become BigInt.
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

// A link may come from anyone, so its decompressed length is limited.
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
