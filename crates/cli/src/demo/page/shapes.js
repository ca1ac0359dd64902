// Shapes for a canvas: one for each level, and those of events.

import { polar } from "./dial.js";

// By level, lowest first. A shape is added to the current path.
export const SHAPES = [
  (c, x, y, r) => c.arc(x, y, r, 0, 7),
  (c, x, y, r) => c.rect(x - r * 0.88, y - r * 0.88, r * 1.76, r * 1.76),
  (c, x, y, r) => polygon(c, x, y + r * 0.15, 3, () => r * 1.25),
  (c, x, y, r) => polygon(c, x, y, 4, () => r * 1.2),
  (c, x, y, r) => polygon(c, x, y, 5, () => r * 1.1),
];

export const star = (c, x, y, r) => polygon(c, x, y, 16, (i) => (i % 2 ? r * 0.5 : r));

export function cross(c, x, y, r) {
  c.moveTo(x - r, y - r);
  c.lineTo(x + r, y + r);
  c.moveTo(x + r, y - r);
  c.lineTo(x - r, y + r);
}

function polygon(c, x, y, corners, radius) {
  for (let i = 0; i < corners; i++) {
    const [dx, dy] = polar(i / corners, radius(i));
    if (i) c.lineTo(x + dx, y + dy);
    else c.moveTo(x + dx, y + dy);
  }
  c.closePath();
}

// Draws the dot of a timer. If it is too small to show its shape, it is a speck.
export function dot(c, { x, y, radius, level }) {
  if (radius < 2.4) return c.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  c.beginPath();
  SHAPES[level - 1](c, x, y, radius);
  return c.fill();
}

// Makes a canvas a square of `size` pixels with its origin in the middle, at the screen's resolution.
export function square(canvas, size) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  canvas.width = canvas.height = Math.round(size * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, (size * ratio) / 2, (size * ratio) / 2);
  return context;
}
