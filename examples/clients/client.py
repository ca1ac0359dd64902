"""Durable timers from Python, with nothing but the standard library.

Schedules a timer, takes it when it is due, and acknowledges it. TOURBILLON_SERVER and TOURBILLON_TOKEN configure it.
"""

import json
import os
import urllib.error
import urllib.request

SERVER = os.environ.get("TOURBILLON_SERVER", "http://127.0.0.1:7420")
TOKEN = os.environ.get("TOURBILLON_TOKEN")


def call(method, path, body=None, timeout=30):
    """Returns the response of a call. An error response raises an exception with the server's message."""
    request = urllib.request.Request(SERVER + path, method=method)
    request.add_header("content-type", "application/json")
    if TOKEN:
        request.add_header("authorization", "Bearer " + TOKEN)
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        problem = json.load(refusal)
        raise RuntimeError(f"{problem['code']}: {problem['detail']}") from None


# With a caller-chosen key, a repeated POST creates no second timer: `keep` returns the existing one.
made = call("POST", "/v1/queues/python/timers?on_conflict=keep",
            {"key": "welcome", "in": "100ms", "payload": {"to": "ann"}})
print("scheduled", made["key"])

# A worker does this in a loop. The server waits up to 20 s for a timer; the lease is how long we hold it.
for work in call("POST", "/v1/queues/python/receive", {"wait": "20s", "lease": "30s"})["deliveries"]:
    print("received", work["key"], "for", work["payload"]["to"])
    settled = call("POST", "/v1/queues/python/ack", {"tokens": [work["token"]]})
    print("acknowledged", settled["acked"])

try:
    call("GET", "/v1/queues/python/timers/nobody")
except RuntimeError as refusal:
    print("refused", str(refusal).split(":")[0])
