// The forecast: bars from this minute to the next year, summed over the queues.

import { ask, clock, queuePath } from "./api.js";
import { $, make, put } from "./rows.js";
import { count, word } from "./words.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
// Each part begins where the previous one ends: its name, its end, and its number of bars.
const PARTS = [["minutes", 10 * MINUTE, 10], ["hour", HOUR, 10], ["day", DAY, 23], ["month", 30 * DAY, 29],
  ["year", 365 * DAY, 11]];
// The most queues that are queried: the largest.
const MOST = 8;
const END = "9999-12-31T00:00:00Z";

export class Coming {
  #last = -Infinity;
  #asking = false;
  parts = PARTS.map(() => []);

  constructor(page) {
    this.page = page;
    const bars = (many) => Array.from({ length: many }, () => make("i"));
    const part = ([name, , many]) =>
      make("figure", { className: name }, make("div", { className: "bars" }, ...bars(many)),
        make("figcaption", {}, make("b"), make("span")));
    $("strip").append(...PARTS.map(part));
  }

  // Queries again, if the last query is a while ago.
  async look(force = false) {
    // The queues are not known yet.
    if (this.page.right === null) return;
    if (this.#asking || (!force && performance.now() - this.#last < 5000)) return;
    this.#asking = true;
    const { chosen, queues } = this.page;
    const waiting = queues.all.filter(({ counts }) => counts.scheduled > 0);
    waiting.sort((one, other) => other.counts.scheduled - one.counts.scheduled);
    const asked = chosen.queue ? queues.all.filter(({ queue }) => queue === chosen.queue) : waiting.slice(0, MOST);
    this.whole = chosen.queue || waiting.length <= MOST;
    try {
      this.parts = await Promise.all(PARTS.map((_, i) => this.#part(i, asked)));
    } catch {
      // A queue was removed: the next query omits it.
    } finally {
      this.#last = performance.now();
      this.#asking = false;
    }
    this.draw();
  }

  // The bars of a part, summed over these queues.
  async #part(number, asked) {
    const [, end, many] = PARTS[number];
    const minute = Math.floor(clock() / MINUTE) * MINUTE;
    const moment = (millis) => new Date(minute + millis).toISOString();
    const from = moment(number ? PARTS[number - 1][1] : 0);
    const query = `from=${from}&to=${moment(end)}&buckets=${many}`;
    const bars = Array.from({ length: many }, () => ({ count: 0 }));
    for (const { queue, counts } of asked) {
      const { buckets } = await ask("GET", `${queuePath(queue)}/forecast?${query}`);
      if (number === 0) buckets[0].count = await this.#thisMinute(queue, counts, moment(MINUTE));
      buckets.slice(0, many).forEach((bucket, i) => {
        bars[i] = { from: bucket.from, to: bucket.to, count: bars[i].count + bucket.count };
      });
    }
    return bars;
  }

  // A forecast counts whole minutes, so this minute includes timers that are already due. The remaining ones are the
  // scheduled timers that are not in a later minute.
  async #thisMinute(queue, { scheduled }, next) {
    const later = await ask("GET", `${queuePath(queue)}/forecast?from=${next}&to=${END}&buckets=1`);
    return Math.max(0, scheduled - later.buckets.reduce((sum, { count }) => sum + count, 0));
  }

  draw() {
    const most = Math.max(1, ...this.parts.flat().map(({ count }) => count));
    const { chosen } = this.page;
    put($("comingOf"), chosen.queue ?? word(this.whole === false ? "ofLargest" : "ofAll"));
    this.parts.forEach((bars, i) => {
      const figure = $("strip").children[i];
      const sum = bars.reduce((sum, bar) => sum + bar.count, 0);
      put(figure.lastChild.firstChild, count(sum));
      put(figure.lastChild.lastChild, word(PARTS[i][0]));
      bars.forEach((bar, j) => {
        const element = figure.firstChild.children[j];
        // Square roots, so that one timer beside a million is still visible.
        element.style.height = bar.count ? `${Math.max(4, 100 * Math.sqrt(bar.count / most))}%` : "1px";
        element.classList.toggle("some", bar.count > 0);
        element.title = bar.from ? `${bar.from.slice(0, 16)} – ${bar.to.slice(0, 16)}: ${count(bar.count)}` : "";
      });
    });
  }
}
