// The run: keeps the story, the model and the connection consistent.
//
// Everything that changes the run goes through one queue, so that a click, the play button and a reconnection never
// interleave. Drawing code listens to `onChange(what, answer)`.

import { Model } from "./model.js";
import { toJson } from "./story.js";
import { Lost, Wire } from "./wire.js";
import { word } from "./words.js";

// Slightly less than the server's limit on a message: a story must fit into one.
const LONGEST = 900_000;
const WAITS = [300, 600, 1200, 2500, 5000];

export class Run {
  constructor({ onOpen, onChange, onState, onWrong, onBusy }) {
    Object.assign(this, { onOpen, onChange, onState, onWrong, onBusy });
    this.waiting = 0;
    this.wire = new Wire(() => this.lost());
    this.queue = Promise.resolve();
    this.story = null;
    this.model = null;
    this.state = "new";
    this.tries = 0;
    addEventListener("online", () => this.retry());
  }

  // Opens another story; the current one stays if the server refuses the new one.
  open(story) {
    this.onOpen();
    return this.enqueue(async () => {
      const before = this.story;
      this.story = story;
      if (await this.reopen()) return true;
      if (this.state === "on" && before) {
        this.story = before;
        await this.reopen();
      }
      return false;
    });
  }

  // Runs the steps that `make` returns when their turn comes.
  tell(make) {
    return this.enqueue(async () => {
      if (this.state !== "on") return null;
      const steps = make();
      if (!steps.length) return null;
      const text = toJson(steps);
      if (text.length + this.story.size > LONGEST) return this.wrong(word("tooLong"));
      const answer = await this.wire.ask(text);
      if (answer.error) {
        this.wrong(answer.error);
        if (answer.over) await this.reopen();
        return null;
      }
      this.story.add(steps, answer.lines);
      this.model.apply(answer);
      this.onChange("told", answer);
      return answer;
    });
  }

  // Resolves to true if the story runs now, to false if the server refuses it. Rejects if the connection is lost.
  async reopen() {
    const answer = await this.wire.open(this.story.scenario());
    this.tries = 0;
    this.setState("on");
    if (answer.error) {
      this.wrong(answer.error);
      return false;
    }
    this.model = new Model(this.story.wheel, answer);
    this.onChange("opened", answer);
    return true;
  }

  enqueue(work) {
    this.onBusy(++this.waiting > 0);
    const done = this.queue.then(work).catch((error) => {
      if (!(error instanceof Lost)) throw error;
      this.lost();
      return null;
    }).finally(() => this.onBusy(--this.waiting > 0));
    this.queue = done.catch(() => null);
    return done;
  }

  // Reports an error without its step number, which is of no use to a visitor.
  wrong(text) {
    this.onWrong(text.replace(/^steps\[\d+\][^:]*: /, ""));
    return null;
  }

  lost() {
    if (this.timer) return;
    this.wire.close();
    this.setState("off");
    const wait = WAITS[Math.min(this.tries++, WAITS.length - 1)];
    this.timer = setTimeout(() => this.retry(), wait);
  }

  retry() {
    if (this.state !== "off") return;
    clearTimeout(this.timer);
    this.timer = null;
    this.enqueue(() => this.reopen());
  }

  setState(state) {
    if (state === this.state) return;
    this.state = state;
    this.onState(state);
  }
}
