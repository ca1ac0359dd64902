// Short animations of events: a fall from ring to ring, a flash where a timer fires, a cross where one is cancelled;
// and a circle around the chosen timer.
//
// Nothing waits for them. At most MOST run at once, and none moves if the visitor prefers reduced motion. If the clock
// runs fast, they are fewer, smaller and shorter, and nothing falls, so that they do not cover the dial.

import { polar } from "./dial.js";
import { parsePlace } from "./model.js";
import { cross, dot, square, star } from "./shapes.js";

const MOST = 200;
// From this speed on, at most MOST_FAST run at once.
const FAST = 100;
const MOST_FAST = 12;
const FALL = 520;
const FLASH = 900;

export class Sparks {
  constructor(canvas, dots) {
    this.canvas = canvas;
    this.dots = dots;
    this.list = [];
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.clean = true;
  }

  layout(size) {
    this.size = size;
    this.context = square(this.canvas, size);
    this.list = [];
    this.clean = false;
  }

  // Animates the events of some log lines. Called before the dots have their new positions, because an animation begins
  // at the old one.
  show(lines, now, speed) {
    this.pace = Math.min(1, Math.max(0.25, 30 / speed));
    this.fast = speed >= FAST;
    const ways = new Map();
    for (const { event, id, from, to, ok } of lines) {
      const way = ways.get(id) ?? [this.dots.spots.get(id)];
      ways.set(id, way);
      if (event === "cascaded") {
        way[0] ??= this.dots.middle(parsePlace(from));
        way.push(this.dots.middle(parsePlace(to)));
      } else if (event === "scheduled" || event === "rescheduled") {
        way.splice(0);
        this.add({ kind: "came", id, way, begin: now, lasts: 400 });
      } else if (event === "cancelled" && ok) {
        this.add({ kind: "cancelled", way, begin: now, lasts: FLASH * this.pace });
      } else if (event === "fired") {
        const falls = this.fall(null, way, now);
        this.add({ kind: "fired", way, begin: now + falls, lasts: FLASH * this.pace });
        ways.delete(id);
      }
    }
    for (const [id, way] of ways) this.fall(id, way, now);
  }

  // Animates a path from ring to ring. Returns its duration.
  fall(id, way, now) {
    const known = way.filter(Boolean);
    if (known.length < 2 || this.still.matches || this.fast) return 0;
    const lasts = (known.length - 1) * FALL * this.pace;
    if (this.add({ kind: "fall", id, way: known, begin: now, lasts }) && id) this.dots.hide(id);
    return lasts;
  }

  add(spark) {
    if (this.list.length >= (this.fast ? MOST_FAST : MOST)) return false;
    this.list.push(spark);
    return true;
  }

  draw(now, chosen) {
    if (this.clean && !this.list.length && !chosen) return;
    const { context, size } = this;
    context.clearRect(-size / 2, -size / 2, size, size);
    this.clean = !this.list.length && !chosen;
    this.list = this.list.filter((spark) => {
      const part = (now - spark.begin) / spark.lasts;
      if (part >= 1 && spark.kind === "fall") this.dots.reveal(spark.id);
      else if (part >= 0 && part < 1) this.drawOne(spark, part);
      return part < 1;
    });
    const spot = chosen && this.dots.spots.get(chosen);
    if (spot) this.circle(spot, spot.radius + 3.5, 2.5);
  }

  drawOne({ kind, way, id }, part) {
    const { context } = this;
    const { levels, ink, fire } = this.dots.colours;
    if (kind === "fall") return this.drawFall(way, part * (way.length - 1), levels);
    const spot = way.filter(Boolean).at(-1) ?? this.dots.spots.get(id);
    if (!spot) return;
    const grown = this.still.matches ? 0.5 : part;
    context.globalAlpha = this.still.matches ? 1 : 1 - part;
    context.fillStyle = fire;
    context.strokeStyle = ink;
    context.lineWidth = 3;
    context.beginPath();
    if (kind === "fired") {
      star(context, spot.x, spot.y, (10 + grown * 16) * (this.fast ? 0.5 : 1));
      context.fill();
    } else if (kind === "cancelled") {
      cross(context, spot.x, spot.y, 9);
      context.stroke();
    } else {
      this.circle(spot, spot.radius + 2 + grown * 10, 1.5);
    }
    context.globalAlpha = 1;
  }

  drawFall(way, at, levels) {
    const { context } = this;
    const [from, to] = [way[Math.floor(at)], way[Math.floor(at) + 1]];
    const t = at % 1;
    const eased = t * t * (3 - 2 * t);
    context.strokeStyle = context.fillStyle = levels[to.level - 1];
    context.lineWidth = 2.5;
    context.beginPath();
    context.moveTo(from.x, from.y);
    let [x, y] = [from.x, from.y];
    for (let i = 1; i <= 24; i++) {
      [x, y] = between(from, to, (eased * i) / 24);
      context.lineTo(x, y);
    }
    context.stroke();
    dot(context, { x, y, radius: Math.max(from.radius, 5), level: to.level });
  }

  circle({ x, y }, radius, width) {
    const { context } = this;
    context.strokeStyle = this.dots.colours.ink;
    context.lineWidth = width;
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.stroke();
  }
}

// A point on the path from one position to another, along the shorter arc around the centre.
function between(from, to, part) {
  const [turn, radius] = [Math.atan2(from.x, -from.y) / (2 * Math.PI), Math.hypot(from.x, from.y)];
  const around = Math.atan2(to.x, -to.y) / (2 * Math.PI) - turn;
  const out = Math.hypot(to.x, to.y) - radius;
  return polar(turn + (around - Math.round(around)) * part, radius + out * part);
}
