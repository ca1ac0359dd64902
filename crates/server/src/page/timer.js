// The chosen timer: its properties and actions.

import { Refused, ask, clock, timerPath } from "./api.js";
import { $, make, put } from "./rows.js";
import { duration, far, word } from "./words.js";

// The most characters shown of a payload.
const MOST = 4000;

export class Timer {
  timer = null;
  #sure = false;

  constructor(page) {
    this.page = page;
    $("run").onclick = () => this.#change("POST", "/run");
    $("move").onsubmit = (event) => {
      event.preventDefault();
      this.#change("PATCH", "", { in: $("moveIn").value });
    };
    $("cancel").onclick = () => this.#cancel();
    $("cancel").onblur = () => this.#ask(false);
  }

  async look() {
    const { queue, key } = this.page.chosen;
    if (!key) return this.draw();
    try {
      const timer = await ask("GET", timerPath(queue, key));
      if (this.page.chosen.key === key) this.timer = timer;
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      this.timer = null;
    }
    this.draw();
  }

  draw() {
    const { chosen, may } = this.page;
    $("timer").hidden = !chosen.key;
    if (!chosen.key) return;
    const { timer } = this;
    put($("timerKey"), chosen.key);
    $("timerClose").href = `#/${encodeURIComponent(chosen.queue)}`;
    const shown = timer?.key === chosen.key && timer.queue === chosen.queue;
    this.#tell(shown ? this.#facts(timer) : [["state", word("gone")]]);
    this.#payload(shown ? timer : {});
    const open = shown && ["scheduled", "due", "dead"].includes(timer.state);
    $("timerButtons").hidden = !may("write") || !(open || (shown && timer.state === "delivering"));
    $("run").hidden = $("move").hidden = !open;
    put($("run"), word(timer?.state === "dead" ? "retry" : "runNow"));
    put($("cancel"), word(this.#sure ? "sure" : "cancel"));
  }

  #facts(timer) {
    const now = clock();
    const when = (moment) => `${moment} · ${far(moment, now)}`;
    const rhythm = timer.every ? `${word("every")} ${duration(timer.every)}` : timer.cron;
    const facts = [["state", word(timer.state), timer.state], ["dueAt", when(timer.due)]];
    if (timer.next_attempt !== timer.due) facts.push(["nextAttempt", when(timer.next_attempt)]);
    facts.push(["attempt", `${timer.attempt} / ${timer.retry.attempts}`]);
    if (timer.last_error) facts.push(["lastError", timer.last_error, "error"]);
    if (rhythm) {
      const zone = timer.zone ? ` (${timer.zone})` : "";
      const times = timer.times ? ` / ${timer.times}` : "";
      facts.push(["rhythm", rhythm + zone], ["occurrence", `${timer.occurrence}${times}`]);
    }
    if (timer.webhook) facts.push(["webhook", timer.webhook.url]);
    facts.push(["created", when(timer.created)], ["generation", timer.generation]);
    return facts;
  }

  #tell(facts) {
    const list = $("timerIs");
    while (list.children.length > facts.length) list.lastChild.remove();
    while (list.children.length < facts.length) list.append(make("div", {}, make("dt"), make("dd")));
    facts.forEach(([name, text, kind], i) => {
      const [title, value] = list.children[i].children;
      put(title, word(name));
      put(value, text);
      value.className = kind ?? "";
    });
  }

  #payload({ payload, payload_base64 }) {
    const bytes = payload_base64 !== undefined;
    const text = bytes ? payload_base64 : JSON.stringify(payload, null, 2);
    $("payload").hidden = text === undefined || text === "null";
    if ($("payload").hidden) return;
    const rest = text.length - MOST;
    put($("payload"), rest > 0 ? `${text.slice(0, MOST)}… (+ ${rest})` : text);
  }

  async #change(method, verb, body) {
    const { queue, key } = this.page.chosen;
    await this.page.work(() => ask(method, timerPath(queue, key) + verb, body));
  }

  // Cancelling cannot be undone: the button asks for confirmation, and resets when it loses the focus.
  async #cancel() {
    const sure = this.#sure;
    this.#ask(!sure);
    if (sure) return this.#change("DELETE", "");
    $("cancel").focus();
  }

  #ask(sure) {
    this.#sure = sure;
    this.draw();
  }
}
