// The rings: draws the geometry, its hands, and the slot under the pointer or the keyboard's focus.
//
// The lowest level is the outermost ring and has the longest hand, as on a watch; a distant timer begins near the
// centre and falls outward. Angles are fractions of a full turn, clockwise from the top. The slot under the pointer is
// computed from its angle: slots are not DOM elements, so a ring of 86,400 slots costs no more than one of 8.

const NS = "http://www.w3.org/2000/svg";
const MOST_RINGS = 5;
const MOST_MARKS = 180;

export class Dial {
  // Moving parts have their own SVG, so that a turning hand does not redraw the numbers.
  constructor(svg, moving) {
    this.svg = svg;
    this.moving = moving;
    this.rings = [];
    this.most = MOST_RINGS;
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
    const thick = Math.min((rim - hole) / count, size * 0.155);
    this.rings = model.levels.slice(0, count).map((level, i) => {
      const [outer, inner] = [rim - i * thick, rim - (i + 1) * thick + Math.min(7, thick * 0.12)];
      return { ...level, outer, inner, ...lettering(level.slots, outer, outer - inner) };
    });
    for (const svg of [this.svg, this.moving]) {
      svg.setAttribute("viewBox", `${-size / 2} ${-size / 2} ${size} ${size}`);
      svg.replaceChildren();
    }
    for (const ring of this.rings) this.drawRing(ring);
    this.look = make("path", { class: "look" }, this.moving);
    for (const ring of this.rings) this.drawHand(ring);
    make("circle", { class: "hub", r: hole - 5 }, this.moving);
    this.follow(model.clock, true);
    this.tellRanges();
  }

  drawRing(ring) {
    const group = make("g", { class: `ring level${ring.level}` }, this.svg);
    make("path", { class: "band", d: wedge(0, 1, ring.inner, ring.outer), "fill-rule": "evenodd" }, group);
    ring.here = make("path", { class: `here level${ring.level}` }, this.moving);
    if (ring.slots <= MOST_MARKS) {
      const line = (turn) => `M${point(turn, ring.inner)}L${point(turn, ring.outer)}`;
      const lines = Array.from({ length: ring.slots }, (_, slot) => line(slot / ring.slots));
      make("path", { class: "marks", d: lines.join("") }, group);
    }
    ring.labels = [];
    for (let slot = 0; slot < ring.slots; slot += ring.nth) {
      const inset = ring.letters / 2 + Math.max(0, `${slot}`.length - 2) * 3;
      const [x, y] = polar((slot + 0.5) / ring.slots, ring.outer - inset);
      const text = make("text", { class: "label", x, y: ring.ranges ? y - 11 : y }, group);
      text.textContent = slot;
      if (!ring.ranges) continue;
      const range = make("text", { class: "range", x, y }, group);
      ring.labels.push({ text: range, told: "" });
    }
  }

  drawHand(ring) {
    const group = make("g", { class: `hand level${ring.level}` }, this.moving);
    ring.hand = group;
    make("line", { y1: 0, y2: -ring.inner }, group);
    make("path", { d: `M-5 ${-ring.inner}L0 ${-ring.outer + 2}L5 ${-ring.inner}Z` }, group);
  }

  // Turns the hands to the clock, at once or smoothly. A hand that completes a turn continues forward, not back.
  follow(clock, atOnce) {
    const tick = this.model.tickOf(clock);
    for (const ring of this.rings) {
      const slot = this.model.hand(ring.level, tick);
      const within = Number(((tick % ring.unit) * 1000n) / ring.unit) / 1000;
      const part = (slot + within + 0.5 / Number(ring.unit)) / ring.slots;
      let turn = part;
      const before = this.turns.get(ring.level) ?? 0;
      turn += Math.floor(before) + (part + Math.floor(before) < before - 1e-9 ? 1 : 0);
      this.turns.set(ring.level, turn);
      ring.hand.style.transform = `rotate(${turn * 360}deg)`;
      ring.hand.classList.toggle("still", atOnce);
      if (ring.at !== slot) {
        ring.at = slot;
        ring.here.setAttribute("d", this.wedge(ring, slot));
      }
    }
  }

  wedge(ring, slot) {
    return wedge(slot / ring.slots, (slot + 1) / ring.slots, ring.inner, ring.outer);
  }

  // Writes the range of moments into each slot: two lines if the slot is also used for the next turn. All slots of a
  // ring use the same format: "[200,219]", or "200–219" if there is less room, or nothing.
  tellRanges() {
    for (const ring of this.rings) {
      const ranges = ring.labels.map((_, slot) => this.model.ranges(ring.level, slot)
        .slice(0, this.model.hashed ? 1 : 2).map((range) => this.model.tellRange(range)));
      const most = Math.max(0, ...ranges.flat().map((range) => range.length)) * 5.3;
      const short = (range) => (most - 11 < ring.wide ? range.slice(1, -1).replace(",", "–") : "");
      const write = (range) => (most < ring.wide ? range : short(range));
      ring.labels.forEach((label, slot) => writeLines(label, ranges[slot].map(write)));
    }
  }

  // Marks the inspected slot, or none.
  lookAt(place) {
    const ring = place && this.rings[place.level - 1];
    if (!ring) return this.look.removeAttribute("d");
    this.look.setAttribute("d", this.wedge(ring, place.slot));
  }

  // The slot at a point relative to the centre.
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

// Writes one or two lines of text. Does nothing if the text is the same, as it usually is.
function writeLines(label, lines) {
  const told = lines.join("\n");
  if (told === label.told) return;
  label.told = told;
  const x = label.text.getAttribute("x");
  label.text.replaceChildren();
  lines.forEach((line, i) => (make("tspan", { x, dy: i ? 10 : 0 }, label.text).textContent = line));
}

export function polar(turn, radius) {
  const angle = turn * 2 * Math.PI;
  return [Math.sin(angle) * radius, -Math.cos(angle) * radius];
}

const point = (turn, radius) => polar(turn, radius).map((x) => x.toFixed(2)).join(" ");

// The path of a segment of a ring, or of the whole ring: two circles, of which the inner one is cut out.
function wedge(from, to, inner, outer) {
  if (to - from > 0.999) return circle(outer) + circle(inner);
  const large = to - from > 0.5 ? 1 : 0;
  return `M${point(from, outer)}A${outer} ${outer} 0 ${large} 1 ${point(to, outer)}`
    + `L${point(to, inner)}A${inner} ${inner} 0 ${large} 0 ${point(from, inner)}Z`;
}

const circle = (r) => `M0 ${-r}A${r} ${r} 0 1 1 0 ${r}A${r} ${r} 0 1 1 0 ${-r}Z`;

// What fits into the slots of a ring: every `nth` number, and whether the ranges fit. `letters` is the depth of the
// text, from the outer edge of the ring.
function lettering(slots, outer, room) {
  const wide = (2 * Math.PI * (outer - 20)) / slots;
  const nth = [1, 2, 4, 5, 10, 15, 20, 30, 60].find((n) => n * wide >= 19) ?? Math.ceil(slots / 12);
  const ranges = nth === 1 && wide >= 32 && room >= 58;
  return { wide, nth, ranges, letters: ranges ? 42 : room > 30 ? 18 : 2 };
}
