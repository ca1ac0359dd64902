// The connection to the server. One connection is one run: its first message is a scenario, the next are steps.
//
// A request either is answered or fails, exactly once. A connection that is lost unexpectedly calls `onLost` once.

const PATIENCE = 15_000;

export class Wire {
  constructor(onLost) {
    this.onLost = onLost;
    this.socket = null;
    this.waiting = null;
  }

  // Opens a new run in place of the old one.
  async open(scenario) {
    this.close();
    const address = new URL("live", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    // Of a WebSocket's headers, a browser lets a page choose only the names of protocols. The page of the timers keeps
    // its token in the session storage of this tab.
    const token = sessionStorage.getItem("token");
    const encode = (text) => btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
    const socket = new WebSocket(address, token ? ["tourbillon", `token.${encode(token)}`] : []);
    this.socket = socket;
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onclose = () => reject(new Lost());
    });
    socket.onmessage = ({ data }) => this.settle((waiting) => waiting.resolve(JSON.parse(data)));
    socket.onclose = () => {
      if (socket !== this.socket) return;
      this.close();
      this.onLost();
    };
    return this.ask(scenario);
  }

  // Sends a message; the next message that arrives is its answer.
  ask(text) {
    if (!this.socket || this.waiting) return Promise.reject(new Lost());
    this.socket.send(text);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.socket?.close(), PATIENCE);
      this.waiting = { resolve, reject, late };
    });
  }

  settle(how) {
    const waiting = this.waiting;
    this.waiting = null;
    if (!waiting) return;
    clearTimeout(waiting.late);
    how(waiting);
  }

  close() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.settle((waiting) => waiting.reject(new Lost()));
  }
}

export class Lost extends Error {}
