/** `<resource-progress>`: every resource of the job and how far it is, by the log's `resource` events.
 *
 * Rows keep their places; only what they say changes. */

import { changeIcon, element, icon } from "./icons.js";
import { duration } from "./relative-time.js";

const WORDS = {
  create: ["creating", "created", "to create"],
  read: ["reading", "read", "to read"],
  update: ["updating", "updated", "to change"],
  delete: ["destroying", "destroyed", "to destroy"],
  replace: ["replacing", "replaced", "to replace"],
  import: ["importing", "imported", "to import"],
  move: ["moving", "moved", "to move"],
  noop: ["checking", "unchanged", "no change"],
};
export const GLYPHS = { create: "+", update: "~", replace: "±", delete: "−", import: "←", move: "→", read: "↓", noop: "=" };
const ICONS = { waiting: "queued", running: "processing", done: "success", failed: "failed", cancelled: "cancelled" };

class ResourceProgress extends HTMLElement {
  #resources = new Map();

  connectedCallback() {
    this.list = this.querySelector("ul");
    this.classList.toggle("planning", this.dataset.type === "PLAN");
    for (const row of this.list.children) {
      row.querySelector("bdi").replaceWith(told(row.dataset.address));
      this.#adopt(row);
    }
    this.#resources.forEach(draw);
    this.order = this.querySelector("[data-slowest]");
    this.order.addEventListener("click", () => this.#sort(this.order.getAttribute("aria-pressed") !== "true"));
    document.addEventListener("log-lines", this);
    document.addEventListener("htmx:afterSettle", this);
    this.#count();
  }

  /** What each resource is doing now, for those who show it otherwise. */
  get resources() {
    return this.#resources.values();
  }

  disconnectedCallback() {
    document.removeEventListener("log-lines", this);
    document.removeEventListener("htmx:afterSettle", this);
  }

  handleEvent(event) {
    const touched = new Set();
    for (const line of event.detail?.lines ?? []) {
      const resource = line.data?.kind === "resource" && this.#take(line.data, line.at);
      if (resource) touched.add(resource);
    }
    if (!event.detail?.lines) this.#end().forEach((resource) => touched.add(resource));
    touched.forEach(draw);
    if (touched.size) document.dispatchEvent(new CustomEvent("resources-changed", { detail: { resources: touched } }));
    this.hidden = this.#resources.size === 0;
    this.#count();
    this.#offerOrder();
  }

  #adopt(row) {
    const { address, action, module, type } = row.dataset;
    this.#resources.set(address, { row, address, action, module, type, status: "waiting", since: null, seconds: null, parts: new Set() });
  }

  #resource({ address, action, module, type }) {
    if (!this.#resources.has(address)) {
      const row = made(address);
      this.list.append(row);
      Object.assign(row.dataset, { address, action, module: module ?? "", type: type ?? "" });
      this.#adopt(row);
    }
    return this.#resources.get(address);
  }

  #take(data, at) {
    const resource = this.#resource(data);
    if (data.event === "planned") {
      Object.assign(resource, { action: data.action, status: "waiting", parts: new Set() });
    } else if (data.action === "read" && resource.action !== "read") {
      return null; // refreshing what is about to change is not yet the change
    } else {
      if (resource.action !== "replace") resource.action = data.action;
      this.#advance(resource, data, at);
    }
    return resource;
  }

  #advance(resource, data, at) {
    if (data.event === "started") {
      Object.assign(resource, { status: "running", doing: data.action, since: at });
    } else if (data.event === "failed") {
      Object.assign(resource, { status: "failed", doing: data.action, seconds: data.seconds ?? null });
    } else if (data.event === "done") {
      resource.parts.add(data.action);
      resource.seconds = (resource.seconds ?? 0) + (data.seconds ?? 0);
      // A replacement is a destroy and a create, in either order.
      const half = resource.action === "replace" && data.action !== "replace" && resource.parts.size < 2;
      resource.status = half ? "waiting" : "done";
    }
  }

  /** The job is over: what still ran was interrupted. */
  #end() {
    const status = document.getElementById("job-header")?.dataset.status;
    if (!["FAILED", "CANCELLED"].includes(status)) return [];
    const running = [...this.#resources.values()].filter((resource) => resource.status === "running");
    running.forEach((resource) => (resource.status = "cancelled"));
    return running;
  }

  // After the end: how long each took

  #sorted = null;

  #offerOrder() {
    const ended = ["SUCCESS", "FAILED", "CANCELLED"].includes(document.getElementById("job-header")?.dataset.status);
    const timed = [...this.#resources.values()].some(({ seconds }) => seconds !== null);
    this.order.hidden = !ended || !timed || this.dataset.type === "PLAN";
    // While it ran, every row kept its place; now the question is what took so long.
    if (!this.order.hidden && this.#sorted === null && !this.matches(":hover, :focus-within")) this.#sort(true);
    else if (this.#sorted) this.#sort(true);
  }

  #sort(slowest) {
    this.#sorted = slowest;
    this.order.setAttribute("aria-pressed", String(slowest));
    const all = [...this.#resources.values()];
    const longest = Math.max(0.001, ...all.map(({ seconds }) => seconds ?? 0));
    const ordered = slowest ? all.toSorted((a, b) => (b.seconds ?? -1) - (a.seconds ?? -1)) : all;
    const rows = ordered.map(({ row }) => row);
    if (rows.some((row, index) => row !== this.list.children[index])) this.list.replaceChildren(...rows);
    for (const { row, seconds } of all) share(row, slowest && seconds !== null ? seconds / longest : null);
  }

  #count() {
    const all = [...this.#resources.values()].filter(({ action }) => action !== "read" && action !== "noop");
    const done = all.filter(({ status }) => status === "done").length;
    const failed = all.filter(({ status }) => status === "failed").length;
    const total = Math.max(all.length, Number(this.dataset.total ?? 0));
    const bar = this.querySelector("progress");
    const words = this.querySelector("[data-words]");
    if (this.dataset.type === "PLAN") {
      bar.hidden = true;
      words.textContent = total ? `${total} to change` : "";
      return;
    }
    bar.max = Math.max(1, total);
    bar.value = done;
    words.textContent = failed ? `${done} of ${total}, ${failed} failed` : `${done} of ${total}`;
    this.classList.toggle("is-complete", done === total && total > 0);
    this.classList.toggle("has-failed", failed > 0);
  }
}

function made(address) {
  const row = element("li", "resource");
  const name = element("span", "address");
  name.append(told(address));
  row.append(icon("queued"), element("span", "glyph"), name, element("span", "word"));
  return row;
}

/** The module and type recede before the name: what follows the last dot outside of brackets. */
function told(address) {
  const [name] = /[^.[\]]+(\[.*?\])?$/.exec(address) ?? [address];
  const whole = element("bdi");
  whole.append(element("span", "kind", address.slice(0, address.length - name.length)), name);
  return whole;
}

function draw({ row, action, doing, status, since, seconds, address }) {
  const planning = row.closest(".planning") !== null;
  const [mark, glyph, , word] = row.children;
  row.className = `resource is-${status}`;
  row.title = address;
  changeIcon(mark, ICONS[status]);
  glyph.className = `glyph ${action}`;
  glyph.textContent = GLYPHS[action] ?? "=";
  word.replaceChildren(...said(WORDS[action] ?? WORDS.noop, WORDS[doing] ?? WORDS[action] ?? WORDS.noop));

  function said([, done, planned], [now]) {
    if (status === "running") return [`${now}… `, ticking(since)];
    if (status === "done") return [seconds === null ? done : `${done} ${duration(seconds)}`];
    if (status === "failed") return ["failed"];
    if (status === "cancelled") return ["interrupted"];
    return [planning ? planned : "waiting"];
  }
}

/** How much of the longest time a resource took, as a bar below its name. */
function share(row, part) {
  let bar = row.querySelector(".share");
  if (part === null) return bar?.remove();
  if (!bar) {
    bar = element("progress", "share");
    bar.setAttribute("aria-hidden", "true");
    bar.max = 1;
    row.append(bar);
  }
  bar.value = part;
}

function ticking(since) {
  const elapsed = document.createElement("elapsed-time");
  elapsed.setAttribute("since", since);
  return elapsed;
}

customElements.define("resource-progress", ResourceProgress);
