// The timers: one dot each, on a canvas over the rings.
//
// A dot has the colour and the shape of its level. Only the slots whose timers have changed are redrawn.

import { polar } from "./dial.js";
import { slotKey } from "./model.js";
import { dot, square } from "./shapes.js";

export class Dots {
  constructor(canvas, dial) {
    this.canvas = canvas;
    this.dial = dial;
    this.spots = new Map();
    this.hidden = new Set();
    this.dirty = new Set();
  }

  // Starts over with a model, in a square of `size` pixels.
  layout(model, size) {
    this.model = model;
    this.size = size;
    this.context = square(this.canvas, size);
    this.spots.clear();
    this.hidden.clear();
    this.readColours();
    this.seat(model.members.keys());
  }

  readColours() {
    const style = getComputedStyle(this.canvas);
    const read = (name) => style.getPropertyValue(name).trim();
    const levels = [1, 2, 3, 4, 5].map((level) => read(`--level${level}`));
    this.colours = { levels, ink: read("--ink"), paper: read("--paper"), fire: read("--fire") };
    for (const key of this.model.members.keys()) this.dirty.add(key);
  }

  // Assigns positions to the timers of these slots, and releases the positions of timers that are gone.
  seat(keys, gone = []) {
    for (const name of gone) this.spots.delete(name);
    for (const key of keys) {
      this.dirty.add(key);
      const [level, slot] = key.split("/").map(Number);
      const ring = this.dial.rings[level - 1];
      const members = this.model.members.get(key);
      if (!ring || !members) continue;
      const seat = seating(ring, members.size, this.model.hashed);
      let i = 0;
      for (const timer of members) this.spots.set(timer.name, { ...seat(slot, i++), level, slot, timer });
    }
  }

  // The position of a timer that is alone in a slot.
  middle({ level, slot }) {
    const ring = this.dial.rings[level - 1];
    return ring && { ...seating(ring, 1, false)(slot, 0), level, slot };
  }

  // Hides the dot of a timer while its movement is shown.
  hide(name) {
    this.hidden.add(name);
  }

  reveal(name) {
    if (!this.hidden.delete(name)) return;
    const timer = this.model.timers.get(name);
    if (timer) this.dirty.add(slotKey(timer.level, timer.slot));
  }

  // Redraws the numbers of rounds of a hashed ring.
  count() {
    for (const [key, members] of this.model.members) if (members.size < 20) this.dirty.add(key);
  }

  draw() {
    for (const key of this.dirty) this.drawSlot(...key.split("/").map(Number));
    this.dirty.clear();
  }

  drawSlot(level, slot) {
    const ring = this.dial.rings[level - 1];
    if (!ring) return;
    const { context, colours } = this;
    context.globalCompositeOperation = "destination-out";
    context.fill(new Path2D(this.dial.wedge(ring, slot)));
    context.globalCompositeOperation = "source-over";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const timer of this.model.in(level, slot)) {
      if (this.hidden.has(timer.name)) continue;
      const spot = this.spots.get(timer.name);
      context.fillStyle = colours.levels[level - 1];
      dot(context, spot);
      if (spot.radius >= 6.5) this.write(spot, timer);
    }
  }

  // Writes the name of a timer, and on a hashed ring the rounds left.
  write({ x, y, radius, level }, timer) {
    const { context, colours } = this;
    if (timer.name.length <= 2) {
      context.fillStyle = colours.paper;
      // A triangle has more room below its middle.
      const [size, down] = level === 3 ? [0.95, 0.3] : [1.3, 0.05];
      const short = timer.name.length > 1 ? 0.8 : 1;
      context.font = `600 ${Math.round(radius * size * short)}px system-ui, sans-serif`;
      context.fillText(timer.name, x, y + radius * down);
    }
    if (!this.model.hashed) return;
    context.fillStyle = colours.ink;
    context.font = "600 11px system-ui, sans-serif";
    context.fillText(`${this.model.rounds(timer)}`, x + radius + 5, y);
  }

  // The timer at a point, within a tolerance.
  at(x, y) {
    let best = null;
    let least = 3;
    for (const { name } of this.model.timers.values()) {
      const spot = this.spots.get(name);
      if (!spot) continue;
      const distance = Math.hypot(spot.x - x, spot.y - y) - spot.radius;
      if (distance < least) [best, least] = [spot.timer, distance];
    }
    return best;
  }
}

// Positions for the timers of one slot of a ring: in rows, from its number inward, smaller if there are many. On a
// hashed ring, each has room beside it for its rounds.
function seating(ring, count, rounds) {
  const [inner, outer] = [ring.inner + 2, ring.outer - ring.letters];
  // No wider than the inner end of the slot: clearing a slot would not erase a dot that reaches into the next one.
  const width = (2 * Math.PI * inner) / ring.slots - 1;
  let radius = Math.min(9.5, (outer - inner) / 2, Math.max(width / 2 - 1, ring.slots > 180 ? 6 : 2));
  let rows, columns, step;
  for (;;) {
    step = 2 * radius + (rounds && radius >= 6.5 ? 15 : 1);
    rows = Math.max(1, Math.floor((outer - inner) / (2 * radius + 1)));
    columns = Math.max(1, Math.floor(width / step));
    if (rows * columns >= count || radius <= 0.8) break;
    radius *= 0.9;
  }
  const used = Math.min(columns, Math.ceil(count / rows));
  const height = Math.min(2 * radius + 8, (outer - inner - 2 * radius) / Math.max(1, Math.ceil(count / used) - 1));
  return (slot, i) => {
    const [row, column] = [Math.floor(i / used), i % used];
    const r = outer - radius - row * height;
    const sideways = ((column - (used - 1) / 2) * step) / (2 * Math.PI * r);
    const [x, y] = polar((slot + 0.5) / ring.slots + sideways, r);
    return { x, y, radius };
  };
}
