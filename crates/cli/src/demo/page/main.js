// The page: puts the parts together, and owns every button.

import { Dial } from "./dial.js";
import { Dots } from "./dots.js";
import { LESSONS, lessonStory } from "./lessons.js";
import { Log } from "./log.js";
import { placeName } from "./model.js";
import { listLevels, listRanges, listTimers, tellSlot } from "./panel.js";
import { Player, SPEEDS } from "./player.js";
import { Run } from "./run.js";
import { Sparks } from "./sparks.js";
import { Story } from "./story.js";
import { language, speak, word } from "./words.js";

const $ = (id) => document.getElementById(id);
const PRESETS = ["20,20,20", "60,60,24", "64", "hashed 8", "hashed 60"];

const run = new Run({ onChange, onState, onWrong: (text) => notice(`${word("wrong")}: ${text}`) });
const player = new Player(run, onPlay);
const dial = new Dial($("rings"), $("hands"));
const dots = new Dots($("dots"), dial);
const sparks = new Sparks($("sparks"), dots);
const log = new Log($("lines"), $("done"));
let looked = null;
let chosen = null;
let listed = 0;
let tabled = 0;
let stale = true;

// ---- what the run tells

function onChange(what, answer) {
  if (what === "opened") {
    player.reset();
    log.clear();
    chosen = null;
    layout();
  } else if (run.model.shown() > dial.rings.length && dial.rings.length < 5) {
    layout();
  }
  const read = log.add(answer.lines, answer.done);
  if (what === "told") sparks.show(read, performance.now());
  dots.seat(run.model.touched);
  run.model.touched.clear();
  if (chosen && !run.model.timers.has(chosen)) chosen = null;
  for (const input of document.getElementsByName("drive")) input.checked = input.value === run.story.drive;
  $("tour").dataset.left = run.story.script.length;
  stale = true;
  if (what === "opened") {
    $("addName").value = freeName();
    tellLesson();
    tellWheel();
  }
  keepLink();
}

function onState(state) {
  const off = state === "off";
  const returned = !off && !$("lost").hidden;
  $("lost").hidden = !off;
  document.body.classList.toggle("off", off);
  for (const element of document.querySelectorAll("main button, main input, main select")) {
    if (!["save", "link"].includes(element.id)) element.disabled = off;
  }
  if (off) player.reset();
  if (returned) notice(word("back"));
}

function onPlay(playing) {
  $("play").textContent = `${playing ? "⏸" : "▶"} ${word(playing ? "pause" : "play")}`;
  $("log").setAttribute("aria-live", playing ? "off" : "polite");
  stale = true;
}

let hide;
function notice(text) {
  clearTimeout(hide);
  $("notice").textContent = text;
  $("notice").hidden = false;
  hide = setTimeout(() => ($("notice").hidden = true), 6000);
}

// ---- drawing

function layout() {
  const size = Math.max(280, Math.floor($("dial").clientWidth));
  dial.layout(run.model, size);
  dots.layout(run.model, size);
  sparks.layout(size);
  const levels = dial.rings.map(({ level }) => new Option(`L${level}`, level));
  $("rangesLevel").replaceChildren(...levels);
  stale = true;
}

function frame(now) {
  requestAnimationFrame(frame);
  if (!run.model) return;
  player.frame(now);
  const clock = player.clock();
  if (stale || $("clock").textContent !== `${clock}`) {
    $("clock").textContent = clock;
    const sleeping = player.playing && clock > run.model.clock && run.model.stop !== null;
    $("asleep").textContent = sleeping ? `${word("asleep")} ${run.model.stop}` : "";
    dial.follow(run.model.clock, player.playing && player.speed > 5);
    if (run.model.hashed) dots.count();
  }
  dots.draw();
  sparks.draw(now, chosen);
  // While time runs, what is only to be read is written less often.
  if (!stale || (player.playing && now - listed < 120)) return;
  listed = now;
  stale = false;
  counts();
  if (!player.playing || now - tabled > (run.model.timers.size > 1000 ? 1000 : 120)) {
    tabled = now;
    tables(clock);
  }
}

function counts() {
  const { counts } = run.model;
  for (const key of ["empty", "wakes", "cascades", "fired", "pending"]) $(key).textContent = counts[key];
}

function tables(clock) {
  const { model } = run;
  log.write(player.playing);
  dial.tellRanges();
  listLevels(model, dial.rings.length);
  if ($("timersBox").open) listTimers(model, clock, chosen, choose);
  if ($("rangesBox").open) listRanges(model, Number($("rangesLevel").value || 1));
  $("look").textContent = looked ? tellSlot(model, looked) : word("look");
  $("next").disabled = run.state === "off" || player.nearest() === null;
  const timer = chosen && model.timers.get(chosen);
  $("chosen").hidden = !timer;
  if (!timer) return;
  $("chosenName").textContent = chosen;
  const rounds = model.hashed ? ` · ${word("rounds")} ${model.rounds(timer)}` : "";
  $("chosenText").textContent = `${placeName(model, timer)} · ${word("due")} ${timer.due ?? "∞"}${rounds}`;
}

// ---- the tour

function tellLesson() {
  const { lesson } = run.story;
  const inside = lesson !== null && lesson !== undefined && LESSONS[lesson];
  const [title, text] = inside ? inside[1 + language] : [word("free"), word("freeText")];
  $("lessonTitle").textContent = title;
  $("lessonText").textContent = text;
  $("progress").textContent = inside ? `${lesson + 1} / ${LESSONS.length}` : "";
  $("tour").dataset.file = inside && typeof inside[0] === "string" ? inside[0] : "";
  $("previous").disabled = !inside || lesson === 0;
  $("following").disabled = inside && lesson === LESSONS.length - 1;
  const titles = LESSONS.map((one, i) => new Option(`${i + 1}. ${one[1 + language][0]}`, i));
  $("lesson").replaceChildren(new Option(word("free"), ""), ...titles);
  $("lesson").value = inside ? lesson : "";
}

const openLesson = (number) => run.open(lessonStory(number));
$("previous").onclick = () => openLesson(run.story.lesson - 1);
$("following").onclick = () => openLesson((run.story.lesson ?? -1) + 1);
$("lesson").onchange = () => ($("lesson").value === "" ? makeWheel() : openLesson(Number($("lesson").value)));

// ---- time

$("play").onclick = () => (player.playing ? player.pause() : player.play());
$("step").onclick = () => player.step();
$("next").onclick = () => player.next();
$("restart").onclick = () => {
  const { lesson, wheel, drive } = run.story;
  if (lesson !== null && lesson !== undefined) return run.open(lessonStory(lesson));
  return run.open(new Story({ name: "from the page", wheel, drive }));
};
$("speed").oninput = () => {
  const speed = SPEEDS[Number($("speed").value)];
  player.setSpeed(speed);
  $("speedIs").textContent = speed < 1 ? `1/${Math.round(1 / speed)}×` : `${speed}×`;
};
$("drive").onchange = ({ target }) => {
  player.pause();
  run.queue.then(() => run.open(run.story.driven(target.value)));
};

// ---- timers

function freeName() {
  for (let i = 0; ; i++) {
    const name = String.fromCharCode(65 + (i % 26)) + (i < 26 ? "" : Math.floor(i / 26));
    if (!run.model.timers.has(name)) return name;
  }
}

async function add(step) {
  if (await player.interfere([step])) $("addName").value = freeName();
}

$("add").onsubmit = (event) => {
  event.preventDefault();
  const every = $("addEvery").value ? { every: BigInt($("addEvery").value) } : {};
  add({ schedule: $("addName").value, delay: BigInt($("addDelay").value), ...every });
};

function choose(name) {
  chosen = chosen === name ? null : name;
  const timer = run.model.timers.get(chosen);
  if (timer?.due) $("moveDelay").value = timer.due - player.clock();
  sparks.clean = false;
  stale = true;
}

$("moveForm").onsubmit = (event) => {
  event.preventDefault();
  player.interfere([{ reschedule: chosen, delay: BigInt($("moveDelay").value) }]);
};
$("cancel").onclick = () => player.interfere([{ cancel: chosen }]);
$("release").onclick = () => choose(chosen);

// ---- the rings, by pointer and by keyboard

const fromCentre = ({ clientX, clientY }) => {
  const box = $("rings").getBoundingClientRect();
  const scale = dial.size / box.width;
  return [(clientX - box.left - box.width / 2) * scale, (clientY - box.top - box.height / 2) * scale];
};

function look(place) {
  looked = place;
  dial.lookAt(place);
  stale = true;
}

function act(place) {
  if (run.state === "off") return;
  const at = run.model.dueFor(place.level, place.slot);
  if (at === null) return notice(word("fullTurn"));
  if (chosen) return player.interfere([{ reschedule: chosen, at }]);
  const name = run.model.timers.has($("addName").value) ? freeName() : $("addName").value || freeName();
  add({ schedule: name, at });
}

$("rings").onpointermove = (event) => look(dial.at(...fromCentre(event)));
$("rings").onpointerleave = () => look(null);
$("rings").onclick = (event) => {
  const [x, y] = fromCentre(event);
  const timer = dots.at(x, y);
  const place = dial.at(x, y);
  if (timer) choose(timer.name);
  else if (place) act(place);
};
$("rings").onkeydown = (event) => {
  const place = looked ?? { level: 1, slot: run.model.hand(1) };
  const ring = dial.rings[place.level - 1];
  const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const across = { ArrowDown: -1, ArrowUp: 1 }[event.key];
  if (along) {
    look({ level: place.level, slot: (place.slot + along + ring.slots) % ring.slots });
  } else if (across) {
    const level = Math.min(Math.max(place.level + across, 1), dial.rings.length);
    const slot = Math.floor((place.slot * dial.rings[level - 1].slots) / ring.slots);
    look({ level, slot });
  } else if (event.key === "Enter" || event.key === " ") {
    const [timer] = chosen ? [] : run.model.in(place.level, place.slot);
    if (timer) choose(timer.name);
    else act(place);
  } else if (event.key === "Delete" && chosen) {
    player.interfere([{ cancel: chosen }]);
  } else if (event.key === "Escape" && chosen) {
    choose(chosen);
  } else {
    return;
  }
  event.preventDefault();
};

// ---- the wheel

function showPreset() {
  const preset = $("preset").value;
  if (!preset) return;
  const [, hashed, slots] = /^(hashed )?(.*)$/.exec(preset);
  $("kind").value = hashed ? "hashed" : "hierarchical";
  $("slots").value = slots;
}

function tellWheel() {
  const { kind, slots, tick = 1, start = 0 } = run.story.wheel;
  $("wheelIs").textContent = `${word(kind)} ${slots.join(" / ")}`;
  Object.assign($("kind"), { value: kind });
  $("slots").value = slots.join(",");
  $("tick").value = tick;
  $("start").value = start;
  const preset = `${kind === "hashed" ? "hashed " : ""}${slots.join(",")}`;
  $("preset").value = PRESETS.includes(preset) && BigInt(tick) === 1n ? preset : "";
}

function makeWheel() {
  const slots = $("slots").value.split(/[,/ ]+/).filter(Boolean).map(BigInt);
  const wheel = { kind: $("kind").value, slots, tick: BigInt($("tick").value), start: BigInt($("start").value) };
  return run.open(new Story({ name: "from the page", wheel, drive: run.story?.drive ?? "tick" }));
}

$("preset").onchange = () => {
  showPreset();
  $("tick").value = 1;
  $("start").value = 0;
  if ($("preset").value) makeWheel();
};
$("wheel").onsubmit = (event) => {
  event.preventDefault();
  makeWheel();
};
$("rangesLevel").onchange = $("rangesBox").ontoggle = $("timersBox").ontoggle = () => (stale = true);

// ---- keeping

$("save").onclick = () => {
  const expect = { pending: run.model.timers.size };
  const url = URL.createObjectURL(new Blob([run.story.scenario([{ expect }])], { type: "application/json" }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = "scenario.json";
  anchor.click();
  URL.revokeObjectURL(url);
};
$("link").onclick = async () => {
  history.replaceState(null, "", await run.story.link());
  await navigator.clipboard?.writeText(location.href).then(
    () => notice(word("copied")), () => notice(word("linkIs")));
};

// The address follows the run, a little behind it, so that a reload changes nothing.
let keeping;
function keepLink() {
  clearTimeout(keeping);
  keeping = setTimeout(async () => {
    if (run.story.steps.length > 3000) return;
    history.replaceState(null, "", await run.story.link());
  }, 400);
}

addEventListener("hashchange", () => fromAddress());

async function fromAddress() {
  if (location.hash.length > 1) {
    try {
      if (await run.open(await Story.fromLink(location.hash))) return;
    } catch {
      notice(word("badLink"));
    }
  }
  openLesson(0);
}

// ---- appearance

function setLanguage(number) {
  speak(number);
  $("language").textContent = number ? "EN" : "中文";
  $("preset").replaceChildren(...PRESETS.map((preset) => new Option(preset.replaceAll(",", " / "), preset)),
    new Option(word("other"), ""));
  onPlay(player.playing);
  if (!run.model) return;
  tellLesson();
  tellWheel();
}

$("language").onclick = () => {
  setLanguage(1 - language);
  keep("language", language);
};
$("theme").onclick = () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
  keep("theme", document.documentElement.dataset.theme);
};

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (dots.context) dots.readColours();
  sparks.clean = false;
}

// A browser that keeps nothing for us is fine.
function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch { /* not kept */ }
}

function kept(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dots.context && dots.readColours());
new ResizeObserver(() => run.model && layout()).observe($("dial"));
if (kept("theme")) setTheme(kept("theme"));
setLanguage(kept("language") === null ? language : Number(kept("language")));
showPreset();
$("speed").oninput();
fromAddress();
requestAnimationFrame(frame);
