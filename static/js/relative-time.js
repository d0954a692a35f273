/** `<relative-time>` keeps "3 min ago" true; `<elapsed-time>` counts while something runs. */

/** The server's clock minus ours, from the moment this page was made; small differences are the network's. */
const offset = (() => {
  const made = Date.parse(document.querySelector("meta[name=server-time]")?.content ?? "");
  const difference = made - (performance.timeOrigin ?? Date.now());
  return Math.abs(difference) > 5_000 ? difference : 0;
})();

export function now() {
  return Date.now() + offset;
}

/** The same words as the `duration` filter on the server. */
export function duration(seconds) {
  if (seconds < 0.005) return "< 0.01 s";
  if (seconds < 0.995) return `${Math.max(0, seconds).toFixed(2)} s`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, "0");
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3_600)} h ${two(Math.floor((whole % 3_600) / 60))} min`;
}

/** Whole seconds while counting: tenths that jump by ten say nothing. */
function counted(seconds) {
  return seconds < 60 ? `${Math.floor(seconds)} s` : duration(Math.floor(seconds));
}

/** The same words as `age` on the server. */
export function ago(seconds) {
  if (seconds <= -5) return `in ${ago(-seconds).replace(/ ago$/, "")}`;
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

const ticking = new Set();
setInterval(() => ticking.forEach((element) => element.tick()), 1_000);

class Ticking extends HTMLElement {
  connectedCallback() {
    ticking.add(this);
    this.prepare();
    this.tick();
  }

  disconnectedCallback() {
    ticking.delete(this);
  }

  prepare() {}

  write(words) {
    const target = this.querySelector("time") ?? this;
    if (target.textContent !== words) target.textContent = words;
  }
}

class RelativeTime extends Ticking {
  prepare() {
    // The exact moment in the reader's own zone; the server only knows UTC.
    const time = this.querySelector("time");
    if (time) time.title = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  }

  tick() {
    const at = Date.parse(this.querySelector("time")?.dateTime ?? "");
    if (!Number.isNaN(at)) this.write(ago((now() - at) / 1_000));
  }
}

class ElapsedTime extends Ticking {
  tick() {
    const since = Date.parse(this.getAttribute("since"));
    if (!Number.isNaN(since)) this.write(counted(Math.max(0, (now() - since) / 1_000)));
  }
}

/** A time of day in the reader's zone; the server only knows UTC. */
class LocalTime extends HTMLElement {
  connectedCallback() {
    const time = this.querySelector("time");
    const at = new Date(time?.dateTime ?? "");
    if (Number.isNaN(at.getTime())) return;
    time.textContent = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
    time.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  }
}

customElements.define("local-time", LocalTime);
customElements.define("relative-time", RelativeTime);
customElements.define("elapsed-time", ElapsedTime);
