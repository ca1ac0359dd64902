// The run: the story, the model and the wire, kept in step.
//
// Everything that changes the run goes through one queue, so that a click, the play button and a reconnection never
// meet in the middle. Whoever draws listens to `onChange(what, answer)`.

import { Model } from "./model.js";
import { toJson } from "./story.js";
import { Lost, Wire } from "./wire.js";
import { word } from "./words.js";

// What the server reads in one message, with some room: a story must be tellable at once.
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

  // Shows another story; the one before stays if the server refuses it.
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

  // Has steps done: those that `make` gives when it is their turn.
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

  // True if the story runs now. False if the server refuses it, or is not there.
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

  // Steps are numbered for files; a visitor has done one thing.
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
