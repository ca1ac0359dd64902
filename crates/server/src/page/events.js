// The stream of events: the latest as a list, and the failures of the last minute for each queue.
//
// A busy server sends more events than a person can read. Only the last events of each chunk are parsed; all of them
// are scanned for failures.

import { open } from "./api.js";
import { $, make } from "./rows.js";
import { word } from "./words.js";

// The number of events shown.
const MOST = 25;
// The server sends something every 15 s; after this long a silence the connection counts as lost.
const SILENCE = 40_000;
const MINUTE = 60;

export class Events {
  #shown = [];
  #rest = "";
  #stale = false;
  // For each of the last seconds: the second, and the failures of each queue in it.
  #failures = [];
  #decoder = new TextDecoder();

  constructor(page) {
    this.page = page;
  }

  // Follows the stream, and reconnects when it ends.
  async follow() {
    for (;;) {
      const stop = new AbortController();
      try {
        await this.#stream(stop);
      } catch (error) {
        this.page.streamFailed(error);
      }
      stop.abort();
      await new Promise((done) => setTimeout(done, 1500));
    }
  }

  async #stream(stop) {
    const response = await open("GET", "/v1/events", undefined, stop.signal);
    this.page.happened();
    const reader = response.body.getReader();
    this.#rest = "";
    this.#decoder = new TextDecoder();
    for (;;) {
      const silent = setTimeout(() => stop.abort(), SILENCE);
      const { done, value } = await reader.read().finally(() => clearTimeout(silent));
      if (done) return;
      this.#read(value);
    }
  }

  #read(bytes) {
    const pieces = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split("\n\n");
    this.#rest = pieces.pop();
    $("sampled").hidden = pieces.length <= MOST;
    this.#count(pieces);
    const events = pieces.slice(-MOST).map(parse).filter(Boolean);
    if (!events.length) return;
    const { queue } = this.page.chosen;
    this.#shown.push(...events.filter((event) => !queue || event.queue === queue));
    this.#shown = this.#shown.slice(-MOST);
    this.page.happened();
    if (this.#stale) return;
    this.#stale = true;
    setTimeout(() => requestAnimationFrame(() => this.draw()), 200);
  }

  // A regular expression suffices: the name of a queue has no character that JSON escapes.
  #count(pieces) {
    for (const piece of pieces) {
      const [, queue] = /^event: failed\ndata: \{"queue":"([^"]*)"/.exec(piece) ?? [];
      if (queue === undefined) continue;
      const now = Math.floor(performance.now() / 1000);
      if (this.#failures.at(-1)?.now !== now) this.#failures.push({ now, counts: new Map() });
      const { counts } = this.#failures.at(-1);
      counts.set(queue, (counts.get(queue) ?? 0) + 1);
    }
  }

  // The number of failed attempts in the last minute, by queue, as far as this page received them.
  failures() {
    const since = performance.now() / 1000 - MINUTE;
    this.#failures = this.#failures.filter(({ now }) => now >= since);
    const sums = new Map();
    for (const { counts } of this.#failures) {
      for (const [queue, count] of counts) sums.set(queue, (sums.get(queue) ?? 0) + count);
    }
    return sums;
  }

  draw() {
    this.#stale = false;
    $("quiet").hidden = this.#shown.length > 0;
    $("events").replaceChildren(...this.#shown.toReversed().map(line));
  }
}

function parse(piece) {
  const [, what, data] = /^event: (\w+)\ndata: (.*)$/s.exec(piece) ?? [];
  if (!data || what === "lost") return null;
  try {
    return { what, ...JSON.parse(data) };
  } catch {
    return null;
  }
}

function line({ what, queue, key, at, attempt }) {
  const path = `#/${encodeURIComponent(queue)}${key === null ? "" : `/${encodeURIComponent(key)}`}`;
  return make("li", { className: what },
    make("time", { textContent: at.slice(11, 23) }),
    make("b", { textContent: word(what) }),
    make("a", { href: path, textContent: key === null ? queue : `${queue} / ${key}` }),
    make("small", { textContent: attempt > 1 ? `#${attempt}` : "" }));
}
