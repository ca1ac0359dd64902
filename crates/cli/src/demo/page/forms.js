// The tour, the clock's buttons, and the form for a new wheel.

import { LESSONS, lessonStory } from "./lessons.js";
import { SPEEDS } from "./player.js";
import { Story } from "./story.js";
import { language, word } from "./words.js";

const $ = (id) => document.getElementById(id);
const PRESETS = ["20,20,20", "60,60,24", "64,64,64", "hashed 8", "hashed 60"];

const lessonOf = (story) => (Number.isInteger(story?.lesson) && LESSONS[story.lesson] ? story.lesson : null);

// Shows the lesson's text, or that there is none.
export function tellLesson({ run }) {
  const number = lessonOf(run.story);
  const inside = number !== null;
  const [source, ...told] = inside ? LESSONS[number] : [""];
  const [title, text] = inside ? told[language] : [word("free"), word("freeText")];
  $("lessonTitle").textContent = title;
  $("lessonText").textContent = text;
  $("progress").textContent = inside ? `${number + 1} / ${LESSONS.length}` : "";
  $("tour").dataset.file = typeof source === "string" ? source : "";
  $("previous").disabled = !inside || number === 0;
  $("following").disabled = number === LESSONS.length - 1;
  const titles = LESSONS.map((one, i) => new Option(`${i + 1}. ${one[1 + language][0]}`, i));
  $("lesson").replaceChildren(new Option(word("free"), ""), ...titles);
  $("lesson").value = inside ? number : "";
}

// Shows the settings of the wheel in its form.
export function tellWheel({ run }) {
  const { kind, slots, tick = 1, start = 0 } = run.story.wheel;
  $("wheelIs").textContent = `${word(kind)} ${slots.join(" / ")}`;
  $("kind").value = kind;
  $("slots").value = slots.join(",");
  $("tick").value = tick;
  $("start").value = start;
  const tell = (preset) => preset.replaceAll(",", " / ").replace("hashed", word("hashed"));
  const names = PRESETS.map((preset) => new Option(tell(preset), preset));
  $("preset").replaceChildren(...names, new Option(word("other"), ""));
  const preset = `${kind === "hashed" ? "hashed " : ""}${slots.join(",")}`;
  $("preset").value = PRESETS.includes(preset) && `${tick}` === "1" ? preset : "";
}

// The slowest speed at which a lesson ends within 15 seconds.
function suitSpeed({ model, story }) {
  let end = model.clock;
  for (const { fires } of model.timers.values()) if (fires > end) end = fires;
  for (const { advance } of story.script) if (advance && BigInt(advance) > end) end = BigInt(advance);
  const speed = SPEEDS.findIndex((speed) => speed >= 1 && speed * 15 >= Number(end - model.clock));
  $("speed").value = speed < 0 ? SPEEDS.length - 1 : speed;
  $("speed").oninput();
}

export function startForms(page) {
  const { run, player } = page;

  page.openLesson = async (number) => {
    if (await run.open(lessonStory(number))) suitSpeed(run);
  };
  $("previous").onclick = () => page.openLesson(run.story.lesson - 1);
  $("following").onclick = () => page.openLesson((lessonOf(run.story) ?? -1) + 1);
  $("lesson").onchange = () => ($("lesson").value === "" ? makeWheel() : page.openLesson(Number($("lesson").value)));

  $("play").onclick = () => (player.playing ? player.pause() : player.play());
  $("step").onclick = () => player.step();
  $("next").onclick = () => player.next();
  $("restart").onclick = () => {
    const { wheel, drive } = run.story;
    const number = lessonOf(run.story);
    return number === null ? run.open(new Story({ name: "from the page", wheel, drive })) : page.openLesson(number);
  };
  $("speed").oninput = () => {
    const speed = SPEEDS[Number($("speed").value)];
    player.setSpeed(speed);
    $("speedIs").textContent = speed < 1 ? `1/${Math.round(1 / speed)}×` : `${speed}×`;
  };
  $("speed").oninput();
  // Replays the same story with another drive.
  $("drive").onchange = ({ target }) => {
    player.pause();
    run.queue.then(() => run.open(run.story.driven(target.value)));
  };

  function makeWheel() {
    const slots = $("slots").value.split(/[,/ ]+/).filter(Boolean).map(BigInt);
    const wheel = { kind: $("kind").value, slots, tick: BigInt($("tick").value), start: BigInt($("start").value) };
    return run.open(new Story({ name: "from the page", wheel, drive: run.story.drive }));
  }
  $("preset").onchange = () => {
    const [, hashed, slots] = /^(hashed )?(.*)$/.exec($("preset").value);
    if (!slots) return;
    $("kind").value = hashed ? "hashed" : "hierarchical";
    $("slots").value = slots;
    $("tick").value = 1;
    $("start").value = 0;
    makeWheel();
  };
  $("wheel").onsubmit = (event) => {
    event.preventDefault();
    makeWheel();
  };
  const stale = () => (page.stale = true);
  $("rangesLevel").onchange = $("rangesBox").ontoggle = $("timersBox").ontoggle = stale;
}
