// Saving a story: as a link, and as a file.

import { startLook } from "./shared.js";
import { Story } from "./story.js";
import { word } from "./words.js";

const $ = (id) => document.getElementById(id);

// A story with more steps than this gets a link only on request.
const OFTEN = 3000;

// Updates the address shortly after the run changes, so that a reload restores it.
let keeping;
export function keepLink({ run }) {
  clearTimeout(keeping);
  keeping = setTimeout(() => run.story.steps.length <= OFTEN && address(run), 400);
}

async function address({ story }) {
  history.replaceState(null, "", await story.link());
}

export function startKeeping(page) {
  const { run } = page;

  $("save").onclick = () => {
    const expect = { pending: run.model.timers.size };
    const file = new Blob([run.story.scenario([{ expect }])], { type: "application/json" });
    const anchor = document.createElement("a");
    anchor.href = URL.createObjectURL(file);
    anchor.download = "scenario.json";
    anchor.click();
    URL.revokeObjectURL(anchor.href);
  };
  $("link").onclick = async () => {
    await address(run);
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    page.notice(() => word(copied ? "copied" : "linkIs"));
  };

  async function open() {
    if (location.hash.length > 1) {
      const story = await Story.fromLink(location.hash).catch(() => null);
      if (story && (await run.open(story))) return;
      if (!story) page.notice(() => word("badLink"));
      // Without a server nothing has refused the story: it waits for a connection.
      if (run.state === "off") return;
    }
    page.openLesson(0);
  }
  addEventListener("hashchange", open);

  startLook(page.redraw);
  open();
}
