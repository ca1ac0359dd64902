// The tables beside the rings: the counts, the pending timers, the chosen timer, the range of each slot.

import { placeName } from "./model.js";
import { word } from "./words.js";

const LISTED = 60;
const LISTED_SLOTS = 400;

const $ = (id) => document.getElementById(id);

// The pending timers, the next to fire first.
export function listTimers(model, clock, chosen, onChoose) {
  const byTime = (a, b) => ((a.fires ?? 0n) < (b.fires ?? 0n) ? -1 : (a.fires ?? 0n) > (b.fires ?? 0n) ? 1 : 0);
  const timers = [...model.timers.values()].sort(byTime);
  $("timersCount").textContent = timers.length || "";
  $("noTimers").hidden = timers.length > 0;
  const heads = ["name", "due", "left", "place", ...(model.hashed ? ["rounds"] : [])];
  const rows = timers.slice(0, LISTED).map((timer) => {
    const button = document.createElement("button");
    button.textContent = timer.name;
    button.dataset.timer = timer.name;
    button.className = `level${timer.level}`;
    button.setAttribute("aria-pressed", timer.name === chosen);
    button.onclick = () => onChoose(timer.name);
    const left = timer.due === null ? "∞" : `${timer.due > clock ? timer.due - clock : 0n}`;
    const rounds = model.hashed ? [`${model.rounds(timer)}`] : [];
    return row("td", [button, `${timer.due ?? "∞"}`, left, placeName(model, timer), ...rounds]);
  });
  if (timers.length > LISTED) rows.push(row("td", [`+ ${timers.length - LISTED} ${word("more")}`]));
  $("timers").replaceChildren(...(timers.length ? [row("th", heads.map(word))] : []), ...rows);
}

// The chosen timer.
export function tellChosen(model, chosen) {
  const timer = chosen && model.timers.get(chosen);
  $("chosen").hidden = !timer;
  if (!timer) return;
  $("chosenName").textContent = chosen;
  const rounds = model.hashed ? ` · ${word("rounds")} ${model.rounds(timer)}` : "";
  $("chosenText").textContent = `${placeName(model, timer)} · ${word("due")} ${timer.due ?? "∞"}${rounds}`;
}

export function tellCounts({ counts }) {
  for (const key of ["empty", "wakes", "cascades", "fired", "pending"]) $(key).textContent = counts[key];
}

// The range of each slot of a level.
export function listRanges(model, level) {
  const { slots } = model.levels[level - 1];
  const hand = model.hand(level);
  const rows = Array.from({ length: Math.min(slots, LISTED_SLOTS) }, (_, slot) => {
    const names = model.in(level, slot).slice(0, 12).map((timer) => timer.name);
    const line = row("td", [placeName(model, { level, slot }), tellRanges(model, level, slot), names.join(" ")]);
    line.classList.toggle("here", slot === hand);
    return line;
  });
  $("ranges").replaceChildren(row("th", ["slot", "range", "timers"].map(word)), ...rows);
}

// Describes the range of a slot.
export function tellRanges(model, level, slot) {
  const show = (range) => model.tellRange(range);
  const [now, next] = model.ranges(level, slot);
  if (model.hashed) return `${show(now)} ${word("andEvery")} ${BigInt(model.levels[0].slots) * model.tick}`;
  if (now[2] === "next") return show(now);
  return `${show(now)} ${word("now")}${next ? `, ${word("then")} ${show(next)}` : ""}`;
}

export function tellSlot(model, place) {
  const { level, slot } = place;
  const timers = model.in(level, slot);
  const names = timers.slice(0, 8).map((timer) => timer.name).join(" ");
  const more = timers.length > 8 ? ` + ${timers.length - 8}` : "";
  const held = timers.length ? `${word("timers")}: ${names}${more}` : word("click");
  return `${placeName(model, place)} · ${tellRanges(model, level, slot)} · ${held}`;
}

const SHAPES = ["●", "■", "▲", "◆", "⬟"];

// The colour, the shape and the slot length of each level drawn, and the number of timers above them.
export function listLevels(model, drawn) {
  const items = model.levels.slice(0, drawn).map(({ level, unit }) => {
    const item = document.createElement("li");
    item.className = `level${level}`;
    const length = word("aSlot").replace("{}", unit * model.tick);
    item.textContent = `${SHAPES[level - 1]} ${model.hashed ? "" : `L${level}: `}${length}`;
    return item;
  });
  const higher = [...model.timers.values()].filter((timer) => timer.level > drawn).length;
  if (higher) {
    const item = document.createElement("li");
    item.textContent = `${higher} ${word("above")}`;
    items.push(item);
  }
  $("legend").replaceChildren(...items);
}

function row(kind, cells) {
  const line = document.createElement("tr");
  for (const content of cells) {
    const cell = document.createElement(kind);
    cell.append(content);
    line.append(cell);
  }
  return line;
}
