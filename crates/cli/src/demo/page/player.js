// Moves the clock: play, pause, step, next event.
//
// With the drive `tick`, the run advances with every tick. Otherwise the driver sleeps: the displayed clock runs ahead,
// and the run advances only at its next stop, or when the visitor does something. A lesson continues when the clock
// reaches the moment that it waits for.

const END = 2n ** 64n - 1n;
// How many seconds the run may fall behind before it advances over several stops at once.
const LATE = 0.25;

export const SPEEDS = [1 / 100, 1 / 30, 1 / 10, 1 / 3, 1, 3, 10, 30, 100, 300, 1000];

export class Player {
  constructor(run, onPlay) {
    this.run = run;
    this.onPlay = onPlay;
    this.playing = false;
    this.busy = false;
    this.speed = 10;
  }

  // The clock to display: never behind the run's.
  clock() {
    const told = this.run.model.clock;
    return this.playing && this.shown > told ? this.shown : told;
  }

  reset() {
    if (this.playing) this.onPlay((this.playing = false));
  }

  setSpeed(speed) {
    if (this.playing) this.begin();
    this.speed = speed;
  }

  begin() {
    this.shown = this.from = this.clock();
    this.since = performance.now();
  }

  play() {
    this.begin();
    this.playing = true;
    this.onPlay(true);
  }

  // Stops the displayed clock. The run catches up.
  pause() {
    const shown = this.clock();
    if (!this.playing) return;
    this.reset();
    if (shown > this.run.model.clock) this.advance(shown);
  }

  // Advances by one tick.
  step() {
    this.pause();
    return this.run.tell(() => {
      const { model } = this.run;
      return this.moves(model.timeOf(model.tickOf(model.clock) + 1n));
    });
  }

  // Advances to the next event.
  next() {
    this.pause();
    return this.run.tell(() => {
      const to = this.nearest();
      return to === null ? [] : this.moves(to);
    });
  }

  nearest() {
    const { model, story } = this.run;
    const target = story.target();
    return target === null || (model.stop !== null && model.stop < target) ? model.stop : target;
  }

  // Advances to `to`, unless another story was opened meanwhile.
  advance(to) {
    const { story } = this.run;
    return this.run.tell(() => (this.run.story === story ? this.moves(to) : []));
  }

  // The steps that bring the clock to `to`, or to the lesson's next step if that is earlier.
  moves(to) {
    const { story } = this.run;
    const target = story.target();
    if (target !== null && to >= target) return story.nextOfScript();
    return [{ advance: to > END ? END : to }];
  }

  // Runs the visitor's steps at the displayed clock.
  interfere(steps) {
    const shown = this.clock();
    const { story } = this.run;
    const late = () => this.run.story === story && shown > this.run.model.clock;
    return this.run.tell(() => (late() ? [{ advance: shown }, ...steps] : steps));
  }

  // Stops because the server does not answer. After a reconnection, the run catches up with the displayed clock.
  suspend() {
    this.owed = this.run.model ? this.clock() : 0n;
    this.reset();
  }

  resume() {
    const { owed } = this;
    return this.run.tell(() => (owed > this.run.model.clock ? this.moves(owed) : []));
  }

  // Called for each animation frame.
  async frame(now) {
    if (!this.playing || this.busy) return;
    const { model, story } = this.run;
    const want = this.from + BigInt(Math.floor(Math.max(0, (now - this.since) / 1000) * this.speed));
    if (want <= this.clock()) return;
    let to = want;
    if (story.drive !== "tick") {
      const nearest = this.nearest();
      if (nearest === null || want < nearest) {
        this.shown = want;
        return;
      }
      if (Number(want - nearest) / this.speed < LATE) to = nearest;
    }
    this.busy = true;
    const answer = await this.advance(to).finally(() => (this.busy = false));
    const over = answer && !story.script.length && !model.timers.size && answer.lines.includes('"fired"');
    if (!answer || over) this.reset();
    else if (this.shown < model.clock) this.shown = model.clock;
  }
}
