// The chosen queue: its timers by state or by prefix, pausing it, and reviving its dead timers.

import { ask, clock, queuePath } from "./api.js";
import { $, Rows, make, put } from "./rows.js";
import { count, far, word } from "./words.js";

const STATES = ["", "scheduled", "due", "delivering", "dead", "done", "cancelled"];
const A_PAGE = 100;

export class Timers {
  list = [];
  #next = null;
  #wanted = A_PAGE;
  #asked = 0;

  constructor(page) {
    this.page = page;
    this.rows = new Rows($("list"), (timer) => this.#build(timer), (row, timer) => this.#write(row, timer));
    // Enter opens the timer with exactly this key.
    $("search").onsubmit = (event) => {
      event.preventDefault();
      const [queue, key] = [this.page.chosen.queue, $("prefix").value];
      if (key) location.hash = `#/${encodeURIComponent(queue)}/${encodeURIComponent(key)}`;
    };
    $("state").onchange = $("prefix").oninput = () => this.restart();
    $("more").onclick = () => this.#more();
    $("pause").onclick = () => this.#pause();
    $("redrive").onclick = () => this.#redrive();
  }

  // Loads as many timers as requested, since one page of results may be short. Automatic refreshes skip long lists.
  async look(byItself = false) {
    const { queue } = this.page.chosen;
    if (!queue || (byItself && this.#wanted > 3 * A_PAGE)) return;
    const number = ++this.#asked;
    const query = this.#query();
    const list = [];
    let next = "";
    while (next !== null && list.length < this.#wanted) {
      if (next) query.set("cursor", next);
      const answer = await ask("GET", `${queuePath(queue)}/timers?${query}`);
      if (number !== this.#asked) return;
      list.push(...answer.timers);
      next = answer.next;
    }
    [this.list, this.#next] = [list, next];
    $("list").ariaBusy = false;
    this.draw();
  }

  // Starts another search. The current list stays until the new one has arrived.
  restart() {
    this.#wanted = A_PAGE;
    $("list").ariaBusy = true;
    return this.page.work(() => this.look());
  }

  // Opens another queue.
  open() {
    [this.list, this.#next] = [[], null];
    return this.restart();
  }

  #more() {
    this.#wanted += A_PAGE;
    return this.page.work(() => this.look());
  }

  #query() {
    const query = new URLSearchParams({ limit: A_PAGE });
    if ($("state").value) query.set("state", $("state").value);
    if ($("prefix").value) query.set("prefix", $("prefix").value);
    return query;
  }

  draw() {
    const { chosen, queues, may } = this.page;
    $("queue").hidden = !chosen.queue;
    if (!chosen.queue) return;
    const seen = queues.all.find(({ queue }) => queue === chosen.queue);
    put($("queueName"), chosen.queue);
    $("paused").hidden = !seen?.paused;
    $("pause").hidden = !may("admin");
    put($("pause"), word(seen?.paused ? "resume" : "pause"));
    $("redrive").hidden = !may("write") || !seen?.counts.dead;
    put($("redrive"), `${word("retryAll")} (${count(seen?.counts.dead ?? 0)})`);
    if ($("state").length === 0) $("state").append(...STATES.map((state) => new Option("", state)));
    for (const option of $("state").options) put(option, word(option.value || "all"));
    this.rows.show(this.list, ({ key, generation }) => `${generation} ${key}`);
    $("noTimer").hidden = this.list.length > 0 || $("list").ariaBusy === "true";
    $("more").hidden = !this.#next;
  }

  #build({ queue, key }) {
    const path = `#/${encodeURIComponent(queue)}/${encodeURIComponent(key)}`;
    const link = make("a", { href: path, textContent: key });
    const cells = Array.from({ length: 4 }, () => make("td"));
    cells[1].className = cells[2].className = "wide";
    cells[3].append(make("div"));
    cells[3].className = "error";
    return make("tr", {}, make("th", { scope: "row" }, link), ...cells);
  }

  #write(row, timer) {
    const passed = Date.parse(timer.next_attempt) <= clock();
    const when = timer.state === "scheduled" && passed ? word("now") : far(timer.next_attempt, clock());
    const texts = [word(timer.state), when, timer.attempt, timer.last_error ?? ""];
    texts.forEach((text, i) => put(row.cells[i + 1].firstElementChild ?? row.cells[i + 1], text));
    row.cells[1].className = timer.state;
    row.cells[2].title = timer.next_attempt;
    row.cells[4].title = timer.last_error ?? "";
    row.classList.toggle("here", this.page.chosen.key === timer.key);
  }

  async #pause() {
    const { queue } = this.page.chosen;
    const paused = !this.page.queues.all.find((one) => one.queue === queue)?.paused;
    await this.page.work(() => ask("PATCH", queuePath(queue), { paused }));
  }

  // Revives all dead timers, ten thousand per call.
  async #redrive() {
    const { queue } = this.page.chosen;
    let [revived, more] = [0, true];
    while (more) {
      const answer = await this.page.work(() => ask("POST", `${queuePath(queue)}/redrive`, {}));
      if (!answer) return;
      [revived, more] = [revived + answer.revived, answer.more];
      this.page.notice(() => `${count(revived)} ${word("retried")}`);
    }
  }
}
