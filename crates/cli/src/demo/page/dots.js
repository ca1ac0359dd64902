// The timers: a dot each, on a canvas over the rings, and what happens to them, briefly.
//
// A dot has the colour and the shape of its level. Ten thousand of them are drawn only when one of them has moved.
// An effect lasts less than a second and is never waited for; there are at most MOST_EFFECTS, and none that move if
// the visitor asked for little motion.

import { polar } from "./dial.js";
import { parsePlace } from "./model.js";

const MOST_EFFECTS = 300;
const FALL = 520;
const FLASH = 900;
const SHAPES = [circle, square, triangle, diamond, pentagon];

export class Dots {
  constructor(canvas, dial) {
    this.canvas = canvas;
    this.dial = dial;
    this.effects = [];
    this.spots = new Map();
    this.falling = new Set();
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.dirty = true;
  }

  resize(size) {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.canvas.width = this.canvas.height = Math.round(size * ratio);
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, (size * ratio) / 2, (size * ratio) / 2);
    this.size = size;
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(this.canvas);
    const read = (name) => style.getPropertyValue(name).trim();
    this.colours = [1, 2, 3, 4, 5].map((level) => read(`--level${level}`));
    this.ink = read("--ink");
    this.paper = read("--paper");
    this.fire = read("--fire");
    this.dirty = true;
  }

  // Where each timer is. Those of a slot stand in rows from its outer edge inward, smaller if there are many.
  place(model) {
    this.model = model;
    this.spots.clear();
    for (const [key, members] of model.members) {
      const [level, slot] = key.split("/").map(Number);
      const ring = this.dial.rings[level - 1];
      if (!ring) continue;
      let i = 0;
      const seats = seating(ring, members.size);
      for (const timer of members) this.spots.set(timer.name, { ...seats(slot, i++), level, timer });
    }
    this.dirty = true;
  }

  // The middle of a slot.
  middle({ level, slot }) {
    const ring = this.dial.rings[level - 1];
    return ring && { ...seating(ring, 1)(slot, 0), level };
  }

  // Shows what the lines tell: a fall along all the places that a timer came through, a flash where it fired.
  show(lines, now) {
    const ways = new Map();
    for (const { event, id, from, to, ok } of lines) {
      const was = this.spots.get(id);
      const way = ways.get(id) ?? (was ? [was] : []);
      if (event === "cascaded") {
        if (!way.length) way.push(this.middle(parsePlace(from)));
        way.push(this.middle(parsePlace(to)));
      } else if (event === "fired") {
        this.fall(id, way, now);
        this.effect({ kind: "fired", way, begin: now + (way.length - 1) * FALL, lasts: FLASH });
        ways.delete(id);
        continue;
      } else if (event === "cancelled" && ok) {
        this.effect({ kind: "cancelled", way, begin: now, lasts: FLASH });
      } else if (event === "scheduled" || event === "rescheduled") {
        this.effect({ kind: event, id, way, begin: now, lasts: 400 });
      }
      ways.set(id, way);
    }
    for (const [id, way] of ways) this.fall(id, way, now);
  }

  fall(id, way, now) {
    if (way.length < 2 || this.still.matches) return;
    this.falling.add(id);
    this.effect({ kind: "fall", id, way, begin: now, lasts: (way.length - 1) * FALL });
  }

  effect(effect) {
    effect.way = effect.way.filter(Boolean);
    if (this.effects.length < MOST_EFFECTS && (effect.way.length || effect.id)) this.effects.push(effect);
    else this.falling.delete(effect.id);
    this.dirty = true;
  }

  // Draws, if anything has changed or is on its way.
  draw(now, selected, next) {
    if (!this.dirty && !this.effects.length) return;
    this.dirty = false;
    const { context, size } = this;
    context.clearRect(-size / 2, -size / 2, size, size);
    this.drawDots();
    this.effects = this.effects.filter((effect) => {
      const part = (now - effect.begin) / effect.lasts;
      if (part >= 1) this.falling.delete(effect.id);
      else if (part >= 0) this.drawEffect(effect, part);
      return part < 1;
    });
    if (!this.effects.length) this.dirty = this.falling.size > 0;
    if (next) this.ring(next, this.fire, [2, 2]);
    if (selected) this.ring(selected, this.ink, []);
  }

  drawDots() {
    const { context } = this;
    SHAPES.forEach((shape, i) => {
      context.fillStyle = this.colours[i];
      for (const spot of this.spots.values()) {
        if (spot.level !== i + 1 || this.falling.has(spot.timer.name)) continue;
        this.dot(spot, shape);
      }
    });
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const spot of this.spots.values()) {
      if (spot.radius < 6.5 || this.falling.has(spot.timer.name)) continue;
      this.name(spot, spot.timer);
    }
  }

  dot({ x, y, radius }, shape) {
    const { context } = this;
    if (radius < 2.4) return context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    context.beginPath();
    shape(context, x, y, radius);
    context.fill();
  }

  name({ x, y, radius }, timer) {
    const { context } = this;
    if (timer.name.length <= 2) {
      context.fillStyle = this.paper;
      context.font = `600 ${Math.round(radius * (timer.name.length > 1 ? 1.05 : 1.3))}px system-ui, sans-serif`;
      context.fillText(timer.name, x, y + 0.5);
    }
    if (!this.model.hashed) return;
    const rounds = `${this.model.rounds(timer)}`;
    context.fillStyle = this.ink;
    context.font = "600 10px system-ui, sans-serif";
    context.fillText(rounds, x + radius + 4, y - radius + 1);
  }

  drawEffect({ kind, way, id }, part) {
    const { context } = this;
    const still = this.still.matches;
    if (kind === "fall") {
      const at = part * (way.length - 1);
      const [from, to] = [way[Math.floor(at)], way[Math.floor(at) + 1]];
      const eased = easeIn(at % 1);
      const x = from.x + (to.x - from.x) * eased;
      const y = from.y + (to.y - from.y) * eased;
      context.strokeStyle = context.fillStyle = this.colours[to.level - 1];
      context.lineWidth = 2.5;
      context.beginPath();
      context.moveTo(from.x, from.y);
      context.lineTo(x, y);
      context.stroke();
      return this.dot({ x, y, radius: Math.max(from.radius, 5) }, SHAPES[to.level - 1]);
    }
    const spot = way.at(-1) ?? this.spots.get(id);
    if (!spot) return;
    context.globalAlpha = still ? 1 : 1 - part;
    if (kind === "fired") {
      context.fillStyle = this.fire;
      context.beginPath();
      star(context, spot.x, spot.y, 10 + (still ? 8 : part * 16));
      context.fill();
    } else if (kind === "cancelled") {
      context.strokeStyle = this.ink;
      context.lineWidth = 3;
      context.beginPath();
      cross(context, spot.x, spot.y, 9);
      context.stroke();
    } else {
      context.strokeStyle = this.ink;
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(spot.x, spot.y, spot.radius + 2 + (still ? 4 : part * 10), 0, 7);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  ring(name, colour, dash) {
    const spot = this.spots.get(name);
    if (!spot) return;
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.setLineDash(dash);
    context.beginPath();
    context.arc(spot.x, spot.y, spot.radius + 3.5, 0, 7);
    context.stroke();
    context.setLineDash([]);
  }

  // The timer at a point, if one is near enough to be meant.
  at(x, y) {
    let best = null;
    let least = Infinity;
    for (const spot of this.spots.values()) {
      const distance = Math.hypot(spot.x - x, spot.y - y) - spot.radius;
      if (distance < least) [best, least] = [spot, distance];
    }
    return best && least <= 3 ? best.timer : null;
  }
}

// Seats for the timers of one slot of a ring.
function seating(ring, count) {
  const room = ring.outer - ring.inner;
  const labels = room > 60 ? 30 : room > 34 ? 16 : 4;
  const [inner, outer] = [ring.inner + labels, ring.outer - 3];
  const width = (2 * Math.PI * ((inner + outer) / 2)) / ring.slots;
  let radius = Math.min(9.5, (outer - inner) / 2, Math.max(width / 2 - 1, 2));
  let rows, columns;
  for (;;) {
    rows = Math.max(1, Math.floor((outer - inner) / (2 * radius + 1)));
    columns = Math.max(1, Math.floor(width / (2 * radius + 1)));
    if (rows * columns >= count || radius <= 0.8) break;
    radius *= 0.9;
  }
  const used = Math.min(columns, Math.ceil(count / rows));
  return (slot, i) => {
    const [row, column] = [Math.floor(i / used) % rows, i % used];
    const r = outer - radius - row * (2 * radius + 1);
    const sideways = ((column - (used - 1) / 2) * (2 * radius + 1)) / (2 * Math.PI * r);
    const [x, y] = polar((slot + 0.5) / ring.slots + sideways, r);
    return { x, y, radius };
  };
}

const easeIn = (t) => t * t * (3 - 2 * t);

function circle(c, x, y, r) {
  c.arc(x, y, r, 0, 7);
}

function square(c, x, y, r) {
  c.rect(x - r * 0.88, y - r * 0.88, r * 1.76, r * 1.76);
}

function polygon(c, x, y, r, corners, turn = 0) {
  for (let i = 0; i < corners; i++) {
    const [dx, dy] = polar(turn + i / corners, r);
    c.lineTo(x + dx, y + dy);
  }
  c.closePath();
}

function triangle(c, x, y, r) {
  polygon(c, x, y + r * 0.15, r * 1.25, 3);
}

function diamond(c, x, y, r) {
  polygon(c, x, y, r * 1.2, 4);
}

function pentagon(c, x, y, r) {
  polygon(c, x, y, r * 1.1, 5);
}

function star(c, x, y, r) {
  for (let i = 0; i < 16; i++) {
    const [dx, dy] = polar(i / 16, i % 2 ? r * 0.5 : r);
    c.lineTo(x + dx, y + dy);
  }
  c.closePath();
}

function cross(c, x, y, r) {
  c.moveTo(x - r, y - r);
  c.lineTo(x + r, y + r);
  c.moveTo(x + r, y - r);
  c.lineTo(x - r, y + r);
}
