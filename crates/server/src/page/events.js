// What happens, as it happens. A busy server tells more than anybody can read: of each piece only the last events are.

import { open } from "./api.js";
import { $, make } from "./rows.js";
import { word } from "./words.js";

// How many events are shown, and how many bytes of a piece are read.
const MOST = 25;
const READ = 6000;
// The server says every 15 s that it is there.
const SILENCE = 40_000;

export class Events {
  #shown = [];
  #rest = "";
  #stale = false;
  #decoder = new TextDecoder();

  constructor(page) {
    this.page = page;
  }

  // Follows the stream, and begins anew when it ends.
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
    for (;;) {
      const silent = setTimeout(() => stop.abort(), SILENCE);
      const { done, value } = await reader.read().finally(() => clearTimeout(silent));
      if (done) return;
      this.#read(value);
    }
  }

  #read(bytes) {
    const all = bytes.length <= READ;
    $("sampled").hidden = all;
    const text = this.#decoder.decode(all ? bytes : bytes.subarray(-READ));
    // Of a part, the first event is not whole.
    const begin = all ? this.#rest + text : text.slice(text.indexOf("\n\n") + 2);
    const pieces = begin.split("\n\n");
    this.#rest = pieces.pop();
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
