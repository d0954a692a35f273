/** A socket that comes back by itself, and says whether it is live, catching up or cut. */

/** After this long without a word we ask for one; after the second, the line counts as cut. */
const QUIET_MS = 15_000;
const DEAD_MS = 25_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/** Close codes of the console: the reader may not (any longer) read this. Trying again would not help. */
const REFUSED = new Set([4401, 4404]);

/** All connections of this page; the light shows the worst of them. */
export const connections = new Set();
/** Dispatches `change` whenever a connection becomes live, falls behind or is cut. */
export const health = new EventTarget();

export class Connection {
  #socket = null;
  #failures = 0;
  #timer = 0;
  #watch = 0;
  #heardAt = 0;
  #address;
  #received;
  #opened;

  /**
   * @param {() => string} address the path to connect to, asked for at each try, so that it can carry a cursor
   * @param {(message: object) => void} received
   * @param {() => string} opened called at each connection; returns the state to begin in
   */
  constructor(address, received, opened) {
    this.#address = address;
    this.#received = received;
    this.#opened = opened;
    this.state = "connecting";
    this.cutSince = null;
  }

  open() {
    connections.add(this);
    window.addEventListener("online", this.#now);
    document.addEventListener("visibilitychange", this.#now);
    document.addEventListener("resume", this.#now); // a page that was frozen
    this.#watch = setInterval(() => this.#listen(), 5_000);
    this.#connect();
  }

  close() {
    connections.delete(this);
    window.removeEventListener("online", this.#now);
    document.removeEventListener("visibilitychange", this.#now);
    document.removeEventListener("resume", this.#now);
    clearInterval(this.#watch);
    clearTimeout(this.#timer);
    this.#drop();
    health.dispatchEvent(new Event("change"));
  }

  send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  become(state) {
    if (state === this.state) return;
    this.state = state;
    this.cutSince = state === "cut" ? (this.cutSince ?? Date.now()) : null;
    health.dispatchEvent(new Event("change"));
  }

  /** Give up this socket and connect again from the cursor. */
  restart() {
    this.#drop();
    this.#later();
  }

  #connect() {
    clearTimeout(this.#timer);
    const url = new URL(this.#address(), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.#socket = socket;
    this.#heardAt = Date.now();
    socket.onopen = () => {
      this.#failures = 0;
      this.#heardAt = Date.now();
      this.become(this.#opened());
    };
    socket.onmessage = (event) => {
      this.#heardAt = Date.now();
      const message = JSON.parse(event.data);
      if (message.type !== "pong") this.#received(message);
    };
    socket.onclose = (event) => {
      this.#socket = null;
      if (REFUSED.has(event.code)) this.become("refused");
      else this.#later();
    };
  }

  #later() {
    this.become("cut");
    // Full jitter: when the console restarts, its readers do not all come back in the same moment.
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures++);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), wait * (0.25 + 0.75 * Math.random()));
  }

  /** A line can die without a close: after a sleep, or behind a proxy. */
  #listen() {
    const silence = Date.now() - this.#heardAt;
    if (this.#socket === null) return;
    if (silence > DEAD_MS) this.restart();
    else if (silence > QUIET_MS) this.send({ type: "ping" });
  }

  #now = () => {
    if (document.hidden || this.state === "refused") return;
    if (this.#socket === null) this.#connect();
    else this.#listen();
  };

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }
}
