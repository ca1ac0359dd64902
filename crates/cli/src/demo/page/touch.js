// Adding, choosing, moving and cancelling timers: by typing, by clicking the rings, by the keyboard.
//
// A click on a timer chooses it. A click on a slot adds a timer there or, if one is chosen, moves it there.

import { word } from "./words.js";

const $ = (id) => document.getElementById(id);

// Whether no pending timer, and no timer that the lesson will schedule, has this name.
export function isFree({ model, story }, name) {
  return name !== "" && !model.timers.has(name) && !story.script.some(({ schedule }) => schedule === name);
}

// A free name: A to Z, then A1 and so on.
export function freeName(run) {
  for (let i = 0; ; i++) {
    const name = String.fromCharCode(65 + (i % 26)) + (i < 26 ? "" : Math.floor(i / 26));
    if (isFree(run, name)) return name;
  }
}

export function startTouch(page) {
  const { run, player, dial, dots, sparks } = page;

  const cancel = () => page.interfere([{ cancel: page.chosen }]);

  async function add(step) {
    if (await page.interfere([step])) $("addName").value = freeName(run);
  }

  function choose(name) {
    page.chosen = page.chosen === name ? null : name;
    const timer = run.model.timers.get(page.chosen);
    if (timer?.due) $("moveDelay").value = timer.due - player.clock();
    sparks.clean = false;
    page.stale = true;
  }
  page.choose = choose;

  function look(place) {
    page.looked = place;
    dial.lookAt(place);
    page.stale = true;
  }

  // Adds a timer to a slot, or moves the chosen one there.
  function act({ level, slot }) {
    if (run.state === "off") return;
    const at = run.model.dueFor(level, slot);
    if (at === null) return page.notice(() => word("fullTurn"));
    if (page.chosen) return page.interfere([{ reschedule: page.chosen, at }]);
    const typed = $("addName").value;
    return add({ schedule: isFree(run, typed) ? typed : freeName(run), at });
  }

  $("add").onsubmit = (event) => {
    event.preventDefault();
    const name = $("addName").value;
    if (!isFree(run, name)) {
      const free = freeName(run);
      $("addName").value = free;
      return page.notice(() => word("taken").replace("{}", name).replace("{}", free), true);
    }
    const every = $("addEvery").value ? { every: BigInt($("addEvery").value) } : {};
    return add({ schedule: name, delay: BigInt($("addDelay").value), ...every });
  };
  $("moveForm").onsubmit = (event) => {
    event.preventDefault();
    page.interfere([{ reschedule: page.chosen, delay: BigInt($("moveDelay").value) }]);
  };
  $("cancel").onclick = cancel;
  $("release").onclick = () => choose(page.chosen);

  const fromCentre = ({ clientX, clientY }) => {
    const box = $("rings").getBoundingClientRect();
    const scale = dial.size / box.width;
    return [(clientX - box.left - box.width / 2) * scale, (clientY - box.top - box.height / 2) * scale];
  };
  $("rings").onpointermove = (event) => look(dial.at(...fromCentre(event)));
  // A finger leaves when it is lifted; the description of what it touched stays readable.
  $("rings").onpointerleave = ({ pointerType }) => pointerType === "touch" || look(null);
  $("rings").onclick = (event) => {
    const [x, y] = fromCentre(event);
    const timer = dots.at(x, y);
    const place = dial.at(x, y);
    if (timer) choose(timer.name);
    else if (place) act(place);
  };

  // Moves from slot to slot, and from ring to ring at the same angle.
  function walk(place, along, across) {
    const { slots } = dial.rings[place.level - 1];
    if (along) return look({ level: place.level, slot: (place.slot + along + slots) % slots });
    const level = Math.min(Math.max(place.level + across, 1), dial.rings.length);
    return look({ level, slot: Math.floor((place.slot * dial.rings[level - 1].slots) / slots) });
  }

  const keys = {
    ArrowLeft: (place) => walk(place, -1, 0),
    ArrowRight: (place) => walk(place, 1, 0),
    ArrowUp: (place) => walk(place, 0, 1),
    ArrowDown: (place) => walk(place, 0, -1),
    Enter: (place) => {
      const [timer] = page.chosen ? [] : run.model.in(place.level, place.slot);
      return timer ? choose(timer.name) : act(place);
    },
    Delete: () => page.chosen && cancel(),
    Escape: () => page.chosen && choose(page.chosen),
  };
  keys[" "] = keys.Enter;
  $("rings").onkeydown = (event) => {
    if (!keys[event.key] || !run.model) return;
    event.preventDefault();
    keys[event.key](page.looked ?? { level: 1, slot: run.model.hand(1) });
  };
}
