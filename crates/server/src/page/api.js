// Requests to this server's API. Keeps the token for the session of the tab, and the server's clock.

let offset = 0;

// The server's clock, in milliseconds.
export const clock = () => Date.now() + offset;

export const token = {
  get: () => sessionStorage.getItem("token"),
  set: (value) => sessionStorage.setItem("token", value),
  forget: () => sessionStorage.removeItem("token"),
};

// An error answer: its status, code and message, and the token that was sent.
export class Refused extends Error {
  constructor(status, problem, sent) {
    super(problem.detail ?? `status ${status}`);
    this.status = status;
    this.code = problem.code;
    this.token = sent;
  }
}

// Returns the raw response; throws if there is none, or if it is an error.
export async function open(method, path, body, signal) {
  const headers = {};
  const sent = token.get();
  if (sent) headers.authorization = `Bearer ${sent}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const response = await fetch(path, { method, headers, body: text, signal });
  const now = Date.parse(response.headers.get("tourbillon-now"));
  if (now) offset = now - Date.now();
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => ({})), sent);
  return response;
}

export async function ask(method, path, body) {
  return (await open(method, path, body)).json();
}

export const queuePath = (queue) => `/v1/queues/${encodeURIComponent(queue)}`;

// Browsers drop path segments that consist only of dots, so such a key cannot be requested.
export const timerPath = (queue, key) => `${queuePath(queue)}/timers/${encodeURIComponent(key)}`;
