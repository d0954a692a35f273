/** `<live-light organization="acme">`: listens to the organization, and shows how true the page is.
 *
 * What changed arrives as a word ("jobs"); whoever shows jobs listens for `jobs-changed` on the body. */

import { Connection, connections, health } from "./connection.js";

const TOPICS = ["jobs", "runners", "specs"];
/** At most one refresh of a list in this time, however much happens. */
const CALM_MS = 400;
/** A boosted page replaces the body; the connection outlives that moment. */
const LINGER_MS = 1_000;
/** How long the page says that it is current again. */
const AGAIN_MS = 6_000;

let followed = null;
const waiting = new Map();
const announcedAt = new Map();

function follow(organization) {
  if (followed?.organization === organization) return;
  followed?.connection.close();
  const connection = new Connection(
    () => `/ws/organizations/${encodeURIComponent(organization)}`,
    (message) => message.type === "changed" && message.topics.forEach(announce),
    () => {
      // Between the page's making and this moment, and during a cut, nobody told us anything.
      TOPICS.forEach(announce);
      return "live";
    },
  );
  followed = { organization, connection };
  connection.open();
}

function leave() {
  if (document.querySelector("live-light")) return;
  followed?.connection.close();
  followed = null;
}

function announce(topic) {
  if (waiting.has(topic)) return;
  const wait = Math.max(0, CALM_MS - (Date.now() - (announcedAt.get(topic) ?? 0)));
  waiting.set(
    topic,
    setTimeout(() => {
      waiting.delete(topic);
      announcedAt.set(topic, Date.now());
      document.body.dispatchEvent(new CustomEvent(`${topic}-changed`));
    }, wait),
  );
}

const RANK = { live: 0, connecting: 1, "catching-up": 2, cut: 3, refused: 4 };

function worst() {
  return [...connections].reduce((a, b) => (a && RANK[a.state] >= RANK[b.state] ? a : b), null);
}

class LiveLight extends HTMLElement {
  #tick = 0;

  connectedCallback() {
    follow(this.getAttribute("organization"));
    health.addEventListener("change", this);
    this.#tick = setInterval(() => this.handleEvent(), 1_000);
    this.handleEvent();
    if (announcedAt.size) TOPICS.filter((topic) => Date.now() - announcedAt.get(topic) < 3_000).forEach(announce);
  }

  disconnectedCallback() {
    health.removeEventListener("change", this);
    clearInterval(this.#tick);
    setTimeout(leave, LINGER_MS);
  }

  handleEvent() {
    const connection = worst();
    const [light, words] = describe(connection);
    // Not the attribute alone: a text that is the same must not be announced again.
    if (this.textContent !== words) this.textContent = words;
    this.dataset.light = light;
    showBar(connection);
  }
}

function describe(connection) {
  switch (connection?.state) {
    case "live":
      return ["live", "live"];
    case "catching-up":
      return ["catching-up", "catching up"];
    case "cut":
      return ["cut", `offline for ${since(connection)}`];
    case "refused":
      return ["cut", "signed out: sign in again"];
    default:
      return ["connecting", "connecting"];
  }
}

function since(connection) {
  const seconds = Math.max(0, Math.round((Date.now() - connection.cutSince) / 1_000));
  return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

let cutShown = null;

/** A short cut shows in the light only; a bar that flickers would be worse than the cut. Then: current again. */
function showBar(connection) {
  const bar = document.getElementById("cut-bar");
  if (!bar) return;
  if (connection?.state === "cut" && Date.now() - connection.cutSince > 3_000) {
    if (cutShown !== connection.cutSince) say(bar, cutWords(connection.cutSince), false);
    cutShown = connection.cutSince;
  } else if (cutShown && connection?.state === "live") {
    cutShown = null;
    say(bar, "Reconnected. This page is up to date.", true);
    setTimeout(() => cutShown === null && (bar.hidden = true), AGAIN_MS);
  }
}

function say(bar, words, current) {
  bar.textContent = words;
  bar.classList.toggle("is-current", current);
  bar.hidden = false;
}

function cutWords(since) {
  const at = new Date(since).toLocaleTimeString([], { hour12: false });
  return `Connection lost. Reconnecting… This page was last updated at ${at}.`;
}

customElements.define("live-light", LiveLight);
