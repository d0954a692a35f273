/** `<diagnostic-cards>`: errors and warnings of the log, each with its place, its snippet and a link to its line. */

import { plain } from "./ansi.js";
import { element, icon } from "./icons.js";
import { announce } from "./phase-timeline.js";

/** More of them would push the log out of reach. */
const MAX_CARDS = 20;

class DiagnosticCards extends HTMLElement {
  connectedCallback() {
    document.addEventListener("log-lines", this);
  }

  disconnectedCallback() {
    document.removeEventListener("log-lines", this);
  }

  #count = 0;
  #cards = new Map();

  handleEvent({ detail: { lines } }) {
    for (const line of lines) if (line.data?.kind === "diagnostic") this.#add(line.data, line.seq);
  }

  #add(diagnostic, seq) {
    const key = JSON.stringify({ ...diagnostic, snippet: null });
    if (this.#cards.has(key)) return again(this.#cards.get(key));
    if (++this.#count > MAX_CARDS) return this.#tellRest();
    const made = card(diagnostic, seq);
    this.#cards.set(key, made);
    // Errors first: a warning never stands above what made the job fail.
    const before = diagnostic.severity === "error" ? this.querySelector(".diagnostic:not(.error)") : null;
    this.insertBefore(made, before);
    if (diagnostic.severity === "error") announce(`Error: ${plain(diagnostic.summary ?? "")}`);
  }

  #tellRest() {
    const rest = this.querySelector(".rest") ?? this.appendChild(element("p", "rest soft"));
    rest.textContent = `and ${this.#count - MAX_CARDS} more in the log, under Warnings and Errors.`;
  }
}

function card(diagnostic, seq) {
  const isError = diagnostic.severity === "error";
  const made = element("article", isError ? "diagnostic error" : "diagnostic");
  const head = element("header");
  const severity = element("span", "severity", isError ? "ERROR" : "WARNING");
  severity.prepend(icon(isError ? "failed" : "warning"));
  head.append(severity, element("strong", "", plain(diagnostic.summary ?? "")), places(diagnostic, seq));
  made.append(head);
  if (diagnostic.detail) made.append(element("p", "detail", diagnostic.detail.split("\n").map(plain).join("\n")));
  if (diagnostic.snippet?.code) made.append(snippet(diagnostic.snippet));
  return made;
}

/** The same once more: the card says how often, and leads to the first. */
function again(made) {
  made.dataset.times = Number(made.dataset.times ?? 1) + 1;
  const told = made.querySelector(".times") ?? made.querySelector("strong").appendChild(element("span", "times soft"));
  told.textContent = ` × ${made.dataset.times}`;
}

function places(diagnostic, seq) {
  const where = element("span", "where");
  if (diagnostic.address) where.append(element("code", "", plain(diagnostic.address)));
  if (diagnostic.file) where.append(element("code", "", plain(diagnostic.file) + (diagnostic.line ? `:${diagnostic.line}` : "")));
  const link = element("a", "", `line ${seq}`);
  link.href = `#L${seq}`;
  where.append(link);
  return where;
}

function snippet({ context, code, start_line: line, highlight_start: from, highlight_end: to, values }) {
  const made = element("pre");
  if (context) made.append(element("span", "number", `${plain(context)}\n`));
  let at = 0;
  code.split("\n").forEach((text, index) => {
    made.append(element("span", "number", `${String((line ?? 1) + index).padStart(4)}  `), ...highlighted(text, from - at, to - at), "\n");
    at += text.length + 1;
  });
  for (const value of values ?? []) made.append(element("span", "number", `      ${plain(described(value))}\n`));
  return made;
}

function highlighted(text, from, to) {
  const start = Math.min(text.length, Math.max(0, from || 0));
  const end = Math.min(text.length, Math.max(start, to || 0));
  if (start === end) return [plain(text)];
  return [plain(text.slice(0, start)), element("mark", "", plain(text.slice(start, end))), plain(text.slice(end))];
}

function described(value) {
  return typeof value === "string" ? value : `${value.traversal ?? ""} ${value.statement ?? ""}`;
}

customElements.define("diagnostic-cards", DiagnosticCards);
