// The queues: totals and a table, trouble first.

import { clock } from "./api.js";
import { $, Rows, make, put } from "./rows.js";
import { count, duration, far, millisOf, word } from "./words.js";

// The most rows of the table: of more, the filter shows those that are looked for.
const MOST = 200;
const STATES = ["scheduled", "due", "delivering", "dead"];
const WIDE = [3, 6, 8];

const trouble = ({ counts }) => counts.due + counts.dead;

export class Queues {
  all = [];

  constructor(page) {
    this.page = page;
    this.rows = new Rows($("queues"), (queue) => this.#build(queue), (row, queue) => this.#write(row, queue));
    $("filter").oninput = () => this.draw();
  }

  draw() {
    const wanted = $("filter").value.trim().toLowerCase();
    const found = this.all.filter(({ queue }) => queue.toLowerCase().includes(wanted));
    found.sort((one, other) => trouble(other) - trouble(one) || (one.queue < other.queue ? -1 : 1));
    this.rows.show(found.slice(0, MOST), ({ queue }) => queue);
    $("none").hidden = this.all.length > 0;
    $("filter").hidden = this.all.length < 8;
    $("hiddenQueues").hidden = found.length <= MOST;
    put($("hiddenQueues"), `${count(Math.max(0, found.length - MOST))} ${word("hidden")}`);
    this.#totals();
  }

  #totals() {
    const { chosen } = this.page;
    const of = chosen.queue ? this.all.filter(({ queue }) => queue === chosen.queue) : this.all;
    const sum = (value) => of.reduce((sum, queue) => sum + value(queue), 0);
    const late = of.reduce((most, { lateness }) => Math.max(most, millisOf(lateness.p99)), 0);
    const values = STATES.map((state) => [state, count(sum(({ counts }) => counts[state]))]);
    values.push(["aSecond", sum((queue) => queue.per_second).toFixed(1)], ["late", duration(`${late}ms`)]);
    if (!$("totals").children.length) {
      const box = ([name]) => make("div", { className: name }, make("dt"), make("dd", { id: `total-${name}` }));
      $("totals").append(...values.map(box));
    }
    for (const [name, text] of values) {
      const value = $(`total-${name}`);
      put(value, text);
      put(value.previousElementSibling, word(name));
      value.parentElement.classList.toggle("alarm", ["due", "dead"].includes(name) && text !== "0");
    }
  }

  #build({ queue }) {
    const link = make("a", { href: `#/${encodeURIComponent(queue)}`, textContent: queue });
    const cells = Array.from({ length: 8 }, (_, i) => make("td", { className: WIDE.includes(i + 1) ? "wide" : "" }));
    const row = make("tr", {}, make("th", { scope: "row" }, link), ...cells, make("td"));
    row.lastChild.append(make("span", { className: "badge", hidden: true }));
    return row;
  }

  #write(row, { queue, counts, per_second, lateness, oldest_due, next, paused }) {
    const now = clock();
    const texts = STATES.map((state) => count(counts[state]));
    texts.push(per_second.toFixed(1), duration(lateness.p99));
    texts.push(oldest_due ? far(oldest_due, now) : "", next ? far(next, now) : "");
    texts.forEach((text, i) => put(row.cells[i + 1], text));
    row.cells[2].classList.toggle("due", counts.due > 0);
    row.cells[4].classList.toggle("dead", counts.dead > 0);
    row.classList.toggle("here", this.page.chosen.queue === queue);
    const badge = row.lastChild.firstChild;
    badge.hidden = !paused;
    put(badge, word("paused"));
  }
}
