// The first visit: a few timers in a queue of their own, with this page as their worker for a minute.

import { ask, queuePath } from "./api.js";
import { $ } from "./rows.js";
import { word } from "./words.js";

const QUEUE = "hello";
const TIMERS = [
  { key: "first", in: "5s", payload: { say: "hello" } },
  { key: "second", in: "20s" },
  { key: "tea", in: "4m" },
  { key: "tomorrow", in: "1d" },
  { key: "next-month", in: "30d" },
  { key: "every-minute", every: "60s", times: 10 },
];

export function startPlay(page) {
  $("play").onclick = async () => {
    const made = await page.work(() =>
      ask("POST", `${queuePath(QUEUE)}/timers?on_conflict=replace`, { timers: TIMERS }));
    if (!made) return;
    page.notice(() => word("playing"));
    location.hash = `#/${QUEUE}`;
    takeThem(page).catch(() => {});
  };
}

// Receives due timers and acknowledges them, as a worker does, until the first minute is over.
async function takeThem(page) {
  const end = performance.now() + 60_000;
  while (performance.now() < end) {
    const { deliveries } = await ask("POST", `${queuePath(QUEUE)}/receive`, { max: 10, wait: "10s" });
    if (!deliveries.length) continue;
    await ask("POST", `${queuePath(QUEUE)}/ack`, { tokens: deliveries.map(({ token }) => token) });
    for (const { key } of deliveries) page.notice(() => `${key} ${word("played")}`);
  }
}
