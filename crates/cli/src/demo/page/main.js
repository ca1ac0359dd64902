// The page: connects its parts, and draws the answers of the server.
//
// | file | owns |
// |---|---|
// | run, wire, story, model | the run on the server, the connection, the list of steps, the state of the wheel |
// | dial, dots, sparks, shapes | the rings and their hands, the timers, their animations |
// | player | the clock |
// | touch | timers and rings, by pointer and by keyboard |
// | forms | the tour, the clock's buttons, the wheel |
// | panel, log | the tables, the event log |
// | keeping | links and files |
// | lessons, scenarios, words | the texts |

import { Dial } from "./dial.js";
import { Dots } from "./dots.js";
import { startForms, tellLesson, tellWheel } from "./forms.js";
import { keepLink, startKeeping } from "./keeping.js";
import { Log } from "./log.js";
import { listLevels, listRanges, listTimers, tellChosen, tellCounts, tellSlot } from "./panel.js";
import { Player } from "./player.js";
import { Run } from "./run.js";
import { Sparks } from "./sparks.js";
import { freeName, isFree, startTouch } from "./touch.js";
import { word } from "./words.js";

const $ = (id) => document.getElementById(id);

const run = new Run({
  onOpen: () => player.reset(),
  onChange,
  onState,
  onWrong: (text) => notice(() => `${word("wrong")}: ${text}`, true),
  onBusy: (busy) => (document.body.ariaBusy = busy),
});
const player = new Player(run, onPlay);
const dial = new Dial($("rings"), $("hands"));
const dots = new Dots($("dots"), dial);
const sparks = new Sparks($("sparks"), dots);
const log = new Log($("lines"), $("done"));

// State that the parts share. `stale` requests that the tables are written again.
const page = { run, player, dial, dots, sparks, notice, interfere, looked: null, chosen: null,
  stale: true, redraw };

function onChange(what, answer) {
  if (what === "opened") {
    player.reset();
    log.clear();
    page.chosen = null;
    layout();
  } else if (Math.min(run.model.shown(), dial.most) > dial.rings.length) {
    layout();
  }
  const read = log.add(answer.lines, answer.done);
  if (what === "told") sparks.show(read, performance.now(), player.playing ? player.speed : 1);
  dots.seat(run.model.touched, answer.gone);
  run.model.touched.clear();
  if (page.chosen && !run.model.timers.has(page.chosen)) page.chosen = null;
  offerName();
  if (what === "opened" || !player.playing) forgive();
  for (const input of document.getElementsByName("drive")) input.checked = input.value === run.story.drive;
  $("tour").dataset.left = run.story.script.length;
  page.stale = true;
  if (what === "opened") {
    $("addName").value = freeName(run);
    tellLesson(page);
    tellWheel(page);
  }
  keepLink(page);
}

function onState(state) {
  const off = state === "off";
  const returned = !off && !$("lost").hidden;
  $("lost").hidden = !off;
  document.body.classList.toggle("off", off);
  for (const element of document.querySelectorAll("main button, main input, main select")) {
    if (!["save", "link"].includes(element.id)) element.disabled = off;
  }
  if (off) player.suspend();
  if (!returned) return;
  player.resume();
  notice(() => word("back"));
}

function onPlay(playing) {
  $("play").textContent = `${playing ? "❚❚" : "▶"} ${word(playing ? "pause" : "play")}`;
  $("log").setAttribute("aria-live", playing ? "off" : "polite");
  page.stale = true;
}

// Runs the visitor's steps at the displayed clock. A success clears the last error.
async function interfere(steps) {
  const answer = await player.interfere(steps);
  if (answer) forgive();
  return answer;
}

// A name that was free when it was suggested may have been taken since, by the lesson.
function offerName() {
  const field = $("addName");
  if (document.activeElement !== field && !isFree(run, field.value)) field.value = freeName(run);
}

// Shows a toast. `tell` returns its text, and is called again if the language changes.
let toast = null;
function notice(tell, wrong = false) {
  clearTimeout(toast?.hide);
  toast = { tell, wrong, hide: setTimeout(hideNotice, 6000) };
  $("notice").textContent = tell();
  $("notice").hidden = false;
}

function hideNotice() {
  clearTimeout(toast?.hide);
  toast = null;
  $("notice").hidden = true;
}

function forgive() {
  if (toast?.wrong) hideNotice();
}

const room = () => Math.max(280, Math.floor($("dial").clientWidth));

function layout() {
  const size = room();
  dial.layout(run.model, size);
  dots.layout(run.model, size);
  sparks.layout(size);
  $("rangesLevel").replaceChildren(...dial.rings.map(({ level }) => new Option(`L${level}`, level)));
  page.stale = true;
}

// Redraws after a change of language or colours.
function redraw() {
  onPlay(player.playing);
  if (toast) $("notice").textContent = toast.tell();
  if (!run.model) return;
  tellLesson(page);
  tellWheel(page);
  dots.readColours();
  sparks.clean = false;
}

let counted = 0;
let listed = 0;
function frame(now) {
  requestAnimationFrame(frame);
  const { model } = run;
  if (!model) return;
  player.frame(now);
  const clock = player.clock();
  if (page.stale || $("clock").textContent !== `${clock}`) {
    $("clock").textContent = clock;
    const asleep = player.playing && clock > model.clock && model.stop !== null;
    $("asleep").textContent = asleep ? `${word("asleep")} ${model.stop}` : "";
    dial.follow(model.clock, player.playing && player.speed > 5);
    if (model.hashed) dots.count();
  }
  dots.draw();
  sparks.draw(now, page.chosen);
  // While the clock runs, the tables are written less often.
  if (!page.stale || (player.playing && now - counted < 120)) return;
  counted = now;
  page.stale = false;
  tellCounts(model);
  if (player.playing && now - listed < (model.timers.size > 1000 ? 1000 : 120)) return;
  listed = now;
  tables(model, clock);
}

function tables(model, clock) {
  log.write(player.playing);
  dial.tellRanges();
  listLevels(model, dial.rings.length);
  if ($("timersBox").open) listTimers(model, clock, page.chosen, page.choose);
  if ($("rangesBox").open) listRanges(model, Number($("rangesLevel").value || 1));
  $("look").textContent = page.looked ? tellSlot(model, page.looked) : word("look");
  $("next").disabled = run.state === "off" || player.nearest() === null;
  tellChosen(model, page.chosen);
}

new ResizeObserver(() => run.model && room() !== dial.size && layout()).observe($("dial"));
startTouch(page);
startForms(page);
startKeeping(page);
requestAnimationFrame(frame);
