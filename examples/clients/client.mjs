// Durable timers from JavaScript, with nothing but what Node 18 brings.
//
// Schedules a timer, takes it when it is due, and acknowledges it. TOURBILLON_SERVER and TOURBILLON_TOKEN configure it.

const server = process.env.TOURBILLON_SERVER ?? "http://127.0.0.1:7420";
const token = process.env.TOURBILLON_TOKEN;

// Returns the response of a call. An error response throws, with the server's message.
async function call(method, path, body) {
  const headers = { "content-type": "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  const signal = AbortSignal.timeout(30_000);
  const response = await fetch(server + path, { method, headers, body: JSON.stringify(body), signal });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.code}: ${answer.detail}`);
  return answer;
}

// With a caller-chosen key, a repeated POST creates no second timer: `keep` returns the existing one.
const timer = { key: "welcome", in: "100ms", payload: { to: "ann" } };
const made = await call("POST", "/v1/queues/javascript/timers?on_conflict=keep", timer);
console.log("scheduled", made.key);

// A worker does this in a loop. The server waits up to 20 s for a timer; the lease is how long we hold it.
const { deliveries } = await call("POST", "/v1/queues/javascript/receive", { wait: "20s", lease: "30s" });
for (const work of deliveries) {
  console.log("received", work.key, "for", work.payload.to);
  const settled = await call("POST", "/v1/queues/javascript/ack", { tokens: [work.token] });
  console.log("acknowledged", settled.acked);
}

await call("GET", "/v1/queues/javascript/timers/nobody").catch((refusal) => {
  console.log("refused", refusal.message.split(":")[0]);
});
