// The state of the wheel as of the server's last answer, and the geometry of its slots.
//
// Owns the table of the pending timers, the members of each slot, and the slots `touched` since they were last drawn.
// Times are BigInt, because they extend to the end of u64. The page never decides where a timer is filed; it only
// computes the range of a slot.

const max = (a, b) => (a > b ? a : b);
const min = (a, b) => (a < b ? a : b);

export class Model {
  // The settings of the run come from the story, the rest from the first answer.
  constructor(wheel, answer) {
    this.hashed = wheel.kind === "hashed";
    this.tick = BigInt(wheel.tick ?? 1);
    this.start = BigInt(wheel.start ?? 0);
    this.listed = wheel.slots.length;
    this.levels = answer.levels.map(([slots, unit], i) => (
      { level: i + 1, slots, unit: BigInt(unit), span: BigInt(unit) * BigInt(slots) }));
    this.timers = new Map();
    this.members = new Map();
    this.touched = new Set();
    this.apply(answer);
  }

  apply(answer) {
    this.clock = BigInt(answer.clock);
    this.stop = answer.stop === null ? null : BigInt(answer.stop);
    this.counts = answer;
    for (const name of answer.gone) this.remove(name);
    for (const [name, due, fires, level, slot] of answer.timers) {
      const was = this.timers.get(name);
      const timer = { name, due: due && BigInt(due), fires: fires && BigInt(fires), level, slot };
      if (was && was.level === level && was.slot === slot) {
        Object.assign(was, timer);
        continue;
      }
      this.remove(name);
      this.timers.set(name, timer);
      const key = slotKey(level, slot);
      if (!this.members.has(key)) this.members.set(key, new Set());
      this.members.get(key).add(timer);
      this.touched.add(key);
    }
  }

  remove(name) {
    const timer = this.timers.get(name);
    if (!timer) return;
    this.timers.delete(name);
    const key = slotKey(timer.level, timer.slot);
    const members = this.members.get(key);
    members.delete(timer);
    this.touched.add(key);
    if (!members.size) this.members.delete(key);
  }

  in(level, slot) {
    return [...(this.members.get(slotKey(level, slot)) ?? [])];
  }

  tickOf(time) {
    return (time - this.start) / this.tick;
  }

  timeOf(tick) {
    return this.start + tick * this.tick;
  }

  // The slot of a level that the hand is in.
  hand(level, tick = this.tickOf(this.clock)) {
    const { unit, slots } = this.levels[level - 1];
    return Number((tick / unit) % BigInt(slots));
  }

  // The number of full turns that the hand of a hashed wheel makes before the one in which a timer fires.
  rounds(timer) {
    const left = timer.fires === null ? 0n : this.tickOf(timer.fires) - this.tickOf(this.clock);
    return left > 0n ? left / BigInt(this.levels[0].slots) : 0n;
  }

  // The ranges of a slot: one, or two if the hand is in the slot and its part behind the hand belongs to the next turn.
  // Each is [first, last, state], in ticks; the state is "now" or "next".
  ranges(level, slot) {
    const { unit, slots, span } = this.levels[level - 1];
    const now = this.tickOf(this.clock);
    const number = now / unit;
    const ahead = BigInt((slot - this.hand(level) + slots) % slots);
    if (ahead > 0n) {
      const begin = (number + ahead) * unit;
      return [[begin, begin + unit - 1n, "next"]];
    }
    const ranges = [[now, (number + 1n) * unit - 1n, "now"]];
    const again = (number + BigInt(slots)) * unit;
    if (again <= now + span - 1n) ranges.push([again, now + span - 1n, "next"]);
    return ranges;
  }

  // A range as moments of the clock: "[400,401]".
  tellRange([first, last]) {
    return `[${this.timeOf(first)}${first === last ? "" : `,${this.timeOf(last)}`}]`;
  }

  // A deadline for which a timer would be filed in this slot now; null if there is none.
  dueFor(level, slot) {
    const { unit, slots, span } = this.levels[level - 1];
    const now = this.tickOf(this.clock);
    if (this.hashed) {
      const ahead = (slot - this.hand(1) + slots) % slots;
      return this.timeOf(now + BigInt(ahead || slots));
    }
    const [first, last] = this.ranges(level, slot).at(-1);
    const least = max(first, now + (level === 1 ? 1n : unit));
    const most = min(last, now + span - 1n);
    return least > most ? null : this.timeOf((least + most) / 2n);
  }

  // The number of levels to draw: those that the geometry lists, and those in use.
  shown() {
    let highest = this.listed;
    for (const key of this.members.keys()) highest = Math.max(highest, Number(key.split("/")[0]));
    return Math.min(highest, this.levels.length);
  }
}

export const slotKey = (level, slot) => `${level}/${slot}`;

export const placeName = (model, { level, slot }) =>
  level === 0 ? "–" : model.hashed ? `[${slot}]` : `L${level}[${slot}]`;

// Parses the place in a line of the log: "L2[17]" or "[6]".
export function parsePlace(text) {
  const found = /^(?:L(\d+))?\[(\d+)\]$/.exec(text ?? "");
  return found && { level: Number(found[1] ?? 1), slot: Number(found[2]) };
}
