/** `<phase-timeline>`: what the job went through and how long each part took.
 *
 * Waiting and claiming come from the job's row (the header carries its times), the rest from the log's
 * `phase` events. */

import { element, icon } from "./icons.js";
import { duration } from "./relative-time.js";

const ICONS = { done: "success", running: "processing", waiting: "queued", failed: "failed", cancelled: "cancelled" };
const ENDINGS = { SUCCESS: "done", FAILED: "failed", CANCELLED: "cancelled" };

class PhaseTimeline extends HTMLElement {
  #phases = [];
  #lastEnded = null;
  #drawn = "";

  connectedCallback() {
    document.addEventListener("log-lines", this);
    document.addEventListener("htmx:afterSettle", this);
    this.#draw();
  }

  disconnectedCallback() {
    document.removeEventListener("log-lines", this);
    document.removeEventListener("htmx:afterSettle", this);
  }

  handleEvent(event) {
    if (event.type === "log-lines") event.detail.lines.forEach((line) => this.#take(line));
    this.#draw();
  }

  #take({ at, data }) {
    if (data?.kind !== "phase") return;
    const known = this.#phases.find((phase) => phase.name === data.phase);
    if (data.event === "start") {
      if (known) this.#phases = []; // the same phase again: another attempt has begun
      this.#phases.push({ name: data.phase, since: at, seconds: null });
      announce(`${data.phase} started`);
    } else if (known) {
      known.seconds = data.seconds ?? seconds(known.since, at);
      known.failed = data.failed ?? false;
      this.#lastEnded = known;
    }
  }

  #draw() {
    const job = document.getElementById("job-header")?.dataset;
    if (!job) return;
    const steps = this.#steps(job);
    const key = JSON.stringify(steps);
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.querySelector("ol").replaceChildren(...steps.map(drawn));
  }

  #steps(job) {
    const ending = ENDINGS[job.status];
    const steps = [waited("queued", job.created, job.claimed, job), waited("claimed", job.claimed, job.started, job)];
    // Of a job that did not succeed, the last phase to end is where it stopped: an apply goes on after the last
    // step inside it. Where the runner was not heard any more, it is the one that never ended.
    const cutOff = this.#phases.some((phase) => phase.seconds === null);
    for (const phase of this.#phases) steps.push(ran(phase, job, !cutOff && phase === this.#lastEnded && ending !== "done"));
    if (!ending) steps.push(...this.#expected());
    steps.push({
      name: ending ? job.status.toLowerCase() : "done",
      status: ending ?? "waiting",
      seconds: ending ? seconds(job.created, job.finished) : null,
      total: true,
    });
    return steps.filter((step) => !ending || step.status !== "waiting");
  }

  #expected() {
    const seen = new Set(this.#phases.map((phase) => phase.name));
    const names = (this.dataset.expected ?? "").split(" ").filter(Boolean);
    const furthest = Math.max(-1, ...names.map((name, index) => (seen.has(name) ? index : -1)));
    return names.slice(furthest + 1).map((name) => ({ name, status: "waiting", seconds: null }));
  }
}

function seconds(from, to) {
  return (Date.parse(to) - Date.parse(from)) / 1_000;
}

function waited(name, from, to, job) {
  if (!from) return { name, status: "waiting", seconds: null };
  if (to) return { name, status: "done", seconds: seconds(from, to) };
  const ending = ENDINGS[job.status];
  if (ending) return { name, status: ending, seconds: seconds(from, job.finished) };
  return { name, status: "running", seconds: null, since: from };
}

function ran(phase, job, stopped) {
  const ending = ENDINGS[job.status];
  if (phase.seconds !== null) {
    const status = phase.failed ? "failed" : (stopped && ending) || "done";
    return { name: phase.name, status, seconds: phase.seconds };
  }
  if (ending) return { name: phase.name, status: ending, seconds: Math.max(0, seconds(phase.since, job.finished)) };
  return { name: phase.name, status: "running", seconds: null, since: phase.since };
}

function drawn(step) {
  const item = element("li", `phase is-${step.status}`);
  item.append(icon(ICONS[step.status]), element("span", "name", step.name));
  const took = element("span", "took");
  if (step.seconds !== null) took.textContent = step.total ? `${duration(step.seconds)} in all` : duration(step.seconds);
  else if (step.status === "running") {
    const elapsed = document.createElement("elapsed-time");
    elapsed.setAttribute("since", step.since);
    took.append(elapsed);
  }
  item.append(took);
  return item;
}

/** For those who hear the page: phases and errors, nothing of the log. */
export function announce(words) {
  const announcer = document.getElementById("announcer");
  if (announcer) announcer.textContent = words;
}

customElements.define("phase-timeline", PhaseTimeline);
