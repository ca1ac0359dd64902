// The page: queues, kept current by events, and a form that schedules a timer. It asks this server alone.

const at = (id) => document.getElementById(id);
const token = { get: () => sessionStorage.getItem("token"), set: (value) => sessionStorage.setItem("token", value) };

// Asks the API. A token is sent if the server wants one.
async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  const response = await fetch(path, { ...options, headers });
  at("now").textContent = response.headers.get("tourbillon-now") ?? "";
  if (response.status === 401) at("access").hidden = false;
  return response;
}

function say(text) {
  at("notice").textContent = text;
  at("notice").hidden = !text;
}

function row(queue) {
  const cells = [
    queue.queue + (queue.paused ? " (paused)" : ""),
    ...["scheduled", "due", "delivering", "dead"].map((state) => queue.counts[state].toLocaleString()),
    queue.per_second.toFixed(1),
    queue.lateness.p99,
    queue.oldest_due ?? "",
  ];
  const line = document.createElement("tr");
  for (const text of cells) line.append(Object.assign(document.createElement("td"), { textContent: text }));
  return line;
}

async function look() {
  const response = await ask("/v1/queues");
  const answer = await response.json();
  if (!response.ok) return say(answer.detail);
  say("");
  const queues = answer.queues.sort((one, other) => one.queue.localeCompare(other.queue));
  at("queues").replaceChildren(...queues.map(row));
  at("none").hidden = queues.length > 0;
  at("damaged").hidden = !answer.damaged;
}

// Looks again when something has happened, at most four times a second.
let soon = null;
function lookSoon() {
  soon ??= setTimeout(() => {
    soon = null;
    look().catch(() => say("The server does not answer."));
  }, 250);
}

// Follows the events, and begins anew when the stream ends.
async function follow() {
  for (;;) {
    try {
      const response = await ask("/v1/events");
      if (!response.ok) throw new Error();
      lookSoon();
      const reader = response.body.getReader();
      while (!(await reader.read()).done) lookSoon();
    } catch {
      lookSoon();
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}

at("token").addEventListener("change", () => {
  token.set(at("token").value);
  lookSoon();
});
at("access").addEventListener("submit", (event) => event.preventDefault());

at("schedule").addEventListener("submit", async (event) => {
  event.preventDefault();
  const timer = [`"in":${JSON.stringify(at("in").value)}`];
  if (at("key").value) timer.push(`"key":${JSON.stringify(at("key").value)}`);
  // As it was typed: the server says if it is no JSON.
  if (at("payload").value) timer.push(`"payload":${at("payload").value}`);
  const path = `/v1/queues/${encodeURIComponent(at("queue").value)}/timers`;
  const headers = { "content-type": "application/json" };
  try {
    const response = await ask(path, { method: "POST", headers, body: `{${timer}}` });
    const answer = await response.json();
    at("answer").textContent = response.ok ? `${answer.key} is due at ${answer.due}` : answer.detail;
  } catch {
    at("answer").textContent = "The server does not answer: the timer may have been scheduled or not.";
  }
  lookSoon();
});

// The tour is there if the server has it.
fetch("/tour/", { method: "HEAD" }).then((answer) => (at("tour").hidden = !answer.ok), () => {});

follow();
