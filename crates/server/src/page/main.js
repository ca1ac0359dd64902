// The page: queues, the forecast, the timers of a queue, one timer, and events. It contacts only this server.
//
// | file | owns |
// |---|---|
// | api | requests, the token, the server's clock |
// | queues, coming | the totals, the table of queues, the forecast |
// | timers, timer | the chosen queue, the chosen timer |
// | events, play | the event list; the first visit |
// | rows, words, shared | DOM helpers, texts, language and colours |
//
// The choice is in the address: `#/QUEUE/KEY`.

import { Refused, ask, clock, queuePath, token } from "./api.js";
import { Coming } from "./coming.js";
import { Events } from "./events.js";
import { startPlay } from "./play.js";
import { Queues } from "./queues.js";
import { $, put } from "./rows.js";
import { startLook } from "./shared.js";
import { Timer } from "./timer.js";
import { Timers } from "./timers.js";
import { far, word } from "./words.js";

const RIGHTS = ["read", "write", "admin"];

// State that the parts share.
const page = { chosen: { queue: null, key: null }, right: null, may, work, notice, happened, streamFailed };
page.events = new Events(page);
page.queues = new Queues(page);
page.coming = new Coming(page);
page.timers = new Timers(page);
page.timer = new Timer(page);

// Whether the token has this right, or a higher one.
function may(right) {
  return RIGHTS.indexOf(page.right) >= RIGHTS.indexOf(right);
}

// Runs a change, reports its error, and refreshes the page.
async function work(change) {
  try {
    const answer = await change();
    happened(true);
    return answer;
  } catch (error) {
    if (error instanceof Refused) refused(error);
    else notice(() => word("maybe"));
    return null;
  }
}

function refused(error) {
  // An error for an older token says nothing about the one that was entered meanwhile.
  if (error.status === 401 && error.token !== token.get()) happened(true);
  else if (error.status === 401) wantToken();
  else notice(() => `${word("wrong")}: ${error.message}`);
}

// Shows a toast. `tell` is a function, so that the text follows a change of language.
let told = null;
let hide = 0;
function notice(tell) {
  told = tell;
  put($("notice"), tell());
  $("notice").hidden = false;
  clearTimeout(hide);
  hide = setTimeout(() => {
    told = null;
    $("notice").hidden = true;
  }, 6000);
}

function wantToken() {
  $("access").hidden = false;
  $("forget").hidden = true;
  notice(() => word(token.get() ? "badToken" : "needToken"));
  token.forget();
}

// Refreshes soon after an event: at most twice a second, and less often if a refresh takes long, but at once after the
// visitor's own action.
let [looking, asked, urgent, last, pause, hurry] = [false, false, false, -Infinity, 500, () => {}];
async function happened(atOnce = false) {
  asked = true;
  if (atOnce === true) {
    urgent = true;
    hurry();
  }
  if (looking) return;
  looking = true;
  while (asked) {
    asked = false;
    const wait = urgent ? 0 : last + pause - performance.now();
    if (wait > 0) await new Promise((done) => setTimeout((hurry = done), wait));
    urgent = false;
    const began = performance.now();
    await look();
    last = performance.now();
    pause = Math.min(5000, Math.max(500, 10 * (last - began)));
  }
  looking = false;
}

async function look() {
  if (document.hidden) return;
  try {
    const answer = await ask("GET", "/v1/queues");
    page.queues.all = answer.queues;
    page.right = answer.right;
    $("damaged").hidden = !answer.damaged;
    // Shows all buttons at once: a new right that showed some of them before the others would mislead.
    draw();
    await Promise.all([page.timers.look(true), page.timer.look(), page.coming.look()]);
    connected();
  } catch (error) {
    if (error instanceof Refused) refused(error);
    else disconnected();
  }
  draw();
}

function connected() {
  if (!$("lost").hidden) notice(() => word("back"));
  $("lost").hidden = $("access").hidden = true;
  $("forget").hidden = !token.get();
  document.body.classList.remove("off");
}

function disconnected() {
  $("lost").hidden = false;
  document.body.classList.add("off");
}

function streamFailed(error) {
  if (!(error instanceof Refused)) disconnected();
  happened();
}

// Draws everything that the page has written itself: after a refresh, every second, and after a change of language.
function draw() {
  const empty = page.right !== null && page.queues.all.length === 0;
  $("offer").hidden = !empty || !may("write");
  $("scheduleBox").hidden = !may("write");
  // Beside a long list of timers, the events move below the queues.
  const home = $(page.chosen.queue ? "left" : "right");
  if ($("eventsBox").parentElement !== home) home.append($("eventsBox"));
  document.body.classList.toggle("chosen", page.chosen.queue !== null);
  page.queues.draw();
  page.coming.draw();
  page.timers.draw();
  page.timer.draw();
}

function choose() {
  const [, queue, key] = /^#\/([^/]+)(?:\/(.+))?$/.exec(location.hash) ?? [];
  const before = page.chosen.queue;
  page.chosen = { queue: decode(queue), key: decode(key) };
  if (page.chosen.queue !== before) {
    page.timers.open();
    page.coming.look(true);
    if (page.chosen.queue) $("toQueue").value = page.chosen.queue;
  }
  draw();
  happened(true);
  if (page.chosen.key) $("timer").scrollIntoView({ block: "nearest" });
}

function decode(text) {
  try {
    return text === undefined ? null : decodeURIComponent(text);
  } catch {
    return null;
  }
}

$("access").onsubmit = (event) => {
  event.preventDefault();
  token.set($("token").value.trim());
  $("token").value = "";
  happened(true);
};
$("forget").onclick = () => {
  token.forget();
  location.reload();
};

$("schedule").onsubmit = async (event) => {
  event.preventDefault();
  const timer = [`"in":${JSON.stringify($("in").value)}`];
  if ($("key").value) timer.push(`"key":${JSON.stringify($("key").value)}`);
  // As typed: the server reports invalid JSON.
  if ($("newPayload").value) timer.push(`"payload":${$("newPayload").value}`);
  const made = await work(() => ask("POST", `${queuePath($("toQueue").value)}/timers`, `{${timer}}`));
  if (made) notice(() => `${made.key} ${word("scheduledAs")} ${far(made.due, clock())}`);
};

// The link to the tour is shown if the server has the tour.
fetch("/tour/", { method: "HEAD" }).then((answer) => ($("tour").hidden = !answer.ok), () => {});

addEventListener("hashchange", choose);
document.addEventListener("visibilitychange", happened);
addEventListener("keydown", ({ key, target }) => {
  if (key === "Escape" && location.hash.length > 1) location.hash = "#";
  if (key === "/" && !target.matches("input, select, textarea")) setTimeout(() => $("prefix").focus());
});
setInterval(() => {
  put($("now"), new Date(clock()).toISOString().slice(0, 19).replace("T", " ") + " UTC");
  if (!document.hidden) draw();
}, 1000);

// Rates and lateness change even without events.
setInterval(happened, 5000);

startPlay(page);
startLook(() => {
  if (told) put($("notice"), told());
  draw();
  page.events.draw();
});
choose();
page.events.follow();
