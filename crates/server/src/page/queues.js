// The queues: the totals of all of them, and a table, those in trouble first.

import { clock } from "./api.js";
import { $, Rows, make, put } from "./rows.js";
import { count, duration, far, lengthOf, millisOf, word } from "./words.js";

// The most rows of the table: with more queues, use the filter.
const MOST = 200;
const STATES = ["scheduled", "due", "delivering", "dead"];
// Columns that are hidden on a phone.
const WIDE = [3, 5, 6, 7, 9];
// Timers that wait this long for a worker count as trouble; until then they are normal work.
const OVERDUE = 10_000;

const overdue = ({ oldest_due }) => oldest_due !== null && clock() - Date.parse(oldest_due) > OVERDUE;
const age = ({ oldest_due }) => lengthOf(Math.max(0, clock() - Date.parse(oldest_due)));
const trouble = (queue) => queue.counts.dead + (overdue(queue) ? queue.counts.due : 0);

export class Queues {
  all = [];

  constructor(page) {
    this.page = page;
    this.rows = new Rows($("queues"), (queue) => this.#build(queue), (row, queue) => this.#write(row, queue));
    $("filter").oninput = () => this.draw();
  }

  draw() {
    const wanted = $("filter").value.trim().toLowerCase();
    this.failures = this.page.events.failures();
    const found = this.all.filter(({ queue }) => queue.toLowerCase().includes(wanted));
    // Ranked before sorting: with ten thousand queues, each is compared many times.
    const ranked = found.map((queue) => [trouble(queue), queue]);
    ranked.sort(([one, { queue: a }], [other, { queue: b }]) => other - one || (a < b ? -1 : 1));
    this.rows.show(ranked.slice(0, MOST).map(([, queue]) => queue), ({ queue }) => queue);
    $("none").hidden = this.all.length > 0;
    $("queueTable").hidden = this.all.length === 0;
    $("filter").hidden = this.all.length < 8;
    $("hiddenQueues").hidden = found.length <= MOST;
    put($("hiddenQueues"), `${count(Math.max(0, found.length - MOST))} ${word("hidden")}`);
    this.#totals();
  }

  #totals() {
    const { all } = this;
    const sum = (value) => all.reduce((sum, queue) => sum + value(queue), 0);
    const late = all.reduce((most, { lateness }) => Math.max(most, millisOf(lateness.p99)), 0);
    const older = (one, other) => (!one || (other && other < one) ? other : one);
    const oldest_due = all.reduce((oldest, queue) => older(oldest, queue.oldest_due), null);
    const failed = [...this.failures.values()].reduce((sum, count) => sum + count, 0);
    const values = STATES.map((state) => [state, count(sum(({ counts }) => counts[state]))]);
    values.push(["aSecond", sum((queue) => queue.per_second).toFixed(1)], ["late", duration(`${late}ms`)]);
    values.push(["oldest", oldest_due ? age({ oldest_due }) : "–"], ["failures", count(failed)]);
    const [late_due, dead] = [overdue({ oldest_due }), sum(({ counts }) => counts.dead) > 0];
    const alarms = { due: late_due, oldest: late_due, dead, failures: failed > 0 };
    if (!$("totals").children.length) {
      const box = ([name]) => make("div", { className: name }, make("dt"), make("dd", { id: `total-${name}` }));
      $("totals").append(...values.map(box));
    }
    for (const [name, text] of values) {
      const value = $(`total-${name}`);
      put(value, text);
      put(value.previousElementSibling, word(name));
      value.parentElement.classList.toggle("alarm", alarms[name] ?? false);
    }
  }

  #build({ queue }) {
    const link = make("a", { href: `#/${encodeURIComponent(queue)}`, textContent: queue });
    const cells = Array.from({ length: 9 }, (_, i) => make("td", { className: WIDE.includes(i + 1) ? "wide" : "" }));
    const badge = make("span", { className: "badge", hidden: true });
    return make("tr", {}, make("th", { scope: "row" }, link, " ", badge), ...cells);
  }

  #write(row, stats) {
    const { queue, counts, per_second, lateness, oldest_due, next, paused } = stats;
    const now = clock();
    const failed = this.failures.get(queue) ?? 0;
    const texts = STATES.map((state) => count(counts[state]));
    texts.push(count(failed), per_second.toFixed(1), duration(lateness.p99));
    // The next deadline was read a moment ago: less than a second away counts as now.
    const coming = next && Date.parse(next) < now + 1000 ? word("now") : next && far(next, now);
    texts.push(oldest_due ? age(stats) : "", coming ?? "");
    texts.forEach((text, i) => put(row.cells[i + 1], text));
    row.cells[2].classList.toggle("due", overdue(stats));
    row.cells[8].classList.toggle("due", overdue(stats));
    row.cells[4].classList.toggle("dead", counts.dead > 0);
    row.cells[5].classList.toggle("dead", failed > 0);
    row.classList.toggle("here", this.page.chosen.queue === queue);
    const badge = row.firstChild.lastChild;
    badge.hidden = !paused;
    put(badge, paused ? word("paused") : "");
  }
}
