// The rings: a drawing of the geometry, its hands, and the slot that somebody looks at.
//
// The lowest level is the outermost ring and has the longest hand, as on a watch; a far timer begins near the centre
// and falls outward. Angles are turns of the whole circle, clockwise from the top. Slots are found by arithmetic
// and not by elements, so that a ring of a day of seconds costs no more than one of 8.

const NS = "http://www.w3.org/2000/svg";
const MOST_RINGS = 5;
const MOST_MARKS = 180;

export class Dial {
  constructor(svg) {
    this.svg = svg;
    this.rings = [];
    this.turns = new Map();
    this.size = 0;
  }

  // Draws the rings of a model into a square of `size` pixels.
  layout(model, size) {
    this.model = model;
    this.size = size;
    const count = Math.min(model.shown(), MOST_RINGS);
    const rim = size / 2 - 4;
    const hole = Math.max(size * 0.115, 38);
    const thick = Math.min((rim - hole) / count, size * 0.19);
    const marks = this.size >= 520;
    this.rings = model.levels.slice(0, count).map((level, i) => (
      { ...level, outer: rim - i * thick, inner: rim - (i + 1) * thick + Math.min(7, thick * 0.12) }));
    this.svg.setAttribute("viewBox", `${-size / 2} ${-size / 2} ${size} ${size}`);
    this.svg.replaceChildren();
    for (const ring of this.rings) this.drawRing(ring, marks);
    this.look = make("path", { class: "look" }, this.svg);
    for (const ring of this.rings) this.drawHand(ring);
    make("circle", { class: "hub", r: hole - 5 }, this.svg);
    this.follow(model.clock, true);
  }

  drawRing(ring, marks) {
    const group = make("g", { class: `ring level${ring.level}` }, this.svg);
    make("path", { class: "band", d: wedge(0, 1, ring.inner, ring.outer) }, group);
    ring.here = make("path", { class: "here" }, group);
    if (ring.slots <= MOST_MARKS) {
      const line = (turn) => `M${point(turn, ring.inner)}L${point(turn, ring.outer)}`;
      const lines = Array.from({ length: ring.slots }, (_, slot) => line(slot / ring.slots));
      make("path", { class: "marks", d: lines.join("") }, group);
    }
    const arc = (2 * Math.PI * (ring.inner + 9)) / ring.slots;
    const nth = [1, 2, 4, 5, 10, 15, 20, 30, 60].find((n) => n * arc >= 19) ?? Math.ceil(ring.slots / 12);
    const radius = ring.inner + 10;
    ring.labels = [];
    for (let slot = 0; slot < ring.slots; slot += nth) {
      const [x, y] = polar((slot + 0.5) / ring.slots, radius);
      const text = make("text", { class: "label", x, y }, group);
      text.textContent = slot;
    }
    // The moments of each slot, where there is room for them; two lines where it is used again.
    const wide = (2 * Math.PI * (ring.inner + 24)) / ring.slots;
    if (!marks || nth > 1 || wide < 30 || ring.outer - ring.inner < 60) return;
    for (let slot = 0; slot < ring.slots; slot++) {
      const [x, y] = polar((slot + 0.5) / ring.slots, ring.inner + 25);
      ring.labels.push({ wide, text: make("text", { class: "range", x, y }, group), shown: "" });
    }
  }

  drawHand(ring) {
    const group = make("g", { class: `hand level${ring.level}` }, this.svg);
    ring.hand = group;
    make("line", { y1: 0, y2: -ring.inner }, group);
    make("path", { d: `M-5 ${-ring.inner}L0 ${-ring.outer + 2}L5 ${-ring.inner}Z` }, group);
  }

  // Turns the hands to the clock. A hand that has come round goes on forward and not back.
  follow(clock, atOnce = false) {
    const tick = this.model.tickOf(clock);
    for (const ring of this.rings) {
      const slot = this.model.hand(ring.level, tick);
      const within = Number(((tick % ring.unit) * 1000n) / ring.unit) / 1000;
      const part = (slot + within + 0.5 / Number(ring.unit)) / ring.slots;
      let turn = part;
      const before = this.turns.get(ring.level) ?? 0;
      if (!atOnce) turn += Math.floor(before) + (part + Math.floor(before) < before - 1e-9 ? 1 : 0);
      this.turns.set(ring.level, turn);
      ring.hand.style.transform = `rotate(${turn * 360}deg)`;
      ring.hand.classList.toggle("still", atOnce);
      if (ring.at !== slot) {
        ring.at = slot;
        ring.here.setAttribute("d", wedge(slot / ring.slots, (slot + 1) / ring.slots, ring.inner, ring.outer));
      }
      this.tellRanges(ring);
    }
  }

  tellRanges(ring) {
    ring.labels.forEach((label, slot) => {
      const lines = this.model.ranges(ring.level, slot).map((range) => this.range(range));
      if (this.model.hashed) lines.length = 1;
      const told = lines.filter((line) => line.length * 5.4 < label.wide).join("\n");
      if (told === label.shown) return;
      label.shown = told;
      const { text } = label;
      text.replaceChildren();
      told.split("\n").forEach((line, i) => {
        const span = make("tspan", { x: text.getAttribute("x"), dy: i ? 11 : 0 }, text);
        span.textContent = line;
      });
    });
  }

  range([first, last]) {
    const [from, to] = [this.model.timeOf(first), this.model.timeOf(last)];
    return from === to ? `${from}` : `${from}–${to}`;
  }

  // Marks the slot that is looked at, or none.
  lookAt(place) {
    const ring = place && this.rings[place.level - 1];
    if (!ring) return this.look.removeAttribute("d");
    const { slot } = place;
    this.look.setAttribute("d", wedge(slot / ring.slots, (slot + 1) / ring.slots, ring.inner, ring.outer));
  }

  // The slot at a point, counted from the centre.
  at(x, y) {
    const radius = Math.hypot(x, y);
    const ring = this.rings.find((ring) => radius >= ring.inner && radius <= ring.outer);
    if (!ring) return null;
    const turn = (Math.atan2(x, -y) / (2 * Math.PI) + 1) % 1;
    return { level: ring.level, slot: Math.floor(turn * ring.slots) };
  }
}

function make(name, attributes, parent) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}

export function polar(turn, radius) {
  const angle = turn * 2 * Math.PI;
  return [Math.sin(angle) * radius, -Math.cos(angle) * radius];
}

const point = (turn, radius) => polar(turn, radius).map((x) => x.toFixed(2)).join(" ");

// A piece of a ring. A whole ring is two halves: an arc cannot end where it began.
function wedge(from, to, inner, outer) {
  if (to - from > 0.999) return wedge(0, 0.5, inner, outer) + wedge(0.5, 0.9985, inner, outer).replace("M", "M");
  const large = to - from > 0.5 ? 1 : 0;
  return `M${point(from, outer)}A${outer} ${outer} 0 ${large} 1 ${point(to, outer)}`
    + `L${point(to, inner)}A${inner} ${inner} 0 ${large} 0 ${point(from, inner)}Z`;
}
