/** `<log-view socket="/ws/jobs/…" lines="/api/…/logs">`: the job's log, replayed and then followed.
 *
 * The socket is one stream of numbered lines from the cursor on, so a cut costs nothing but time. Lines
 * are drawn in blocks of 500, each a gutter and a body: 100,000 lines stay smooth, and the browser's own
 * find works. Of a very long log the end comes by the socket, and an earlier block is fetched when the
 * reader gets there; until then it is an empty place of the right height. Phases fold.
 * Other elements of the page hear of the lines by the `log-lines` event on the document. */

import { isStyled, plain, styled } from "./ansi.js";
import { Connection } from "./connection.js";
import { element } from "./icons.js";
import { LogFind } from "./log-find.js";
import { duration } from "./relative-time.js";

const BLOCK_LINES = 500;
/** Up to here the whole log comes at once; of a longer one, the last lines do. */
const WHOLE_LINES = 50_000;
const TAIL_LINES = 5_000;
/** So many blocks are fetched at a time, while a reader scrolls quickly. */
const FETCHES = 4;
/** The most that the API answers at once. */
const PAGE_LINES = 5_000;

/** After this long without a jump, the reader has arrived. */
const REST_MS = 100;
const ACK_LINES = 500;
const ACK_MS = 250;

const LEVELS = { all: () => true, warn: (level) => level === "warn" || level === "error", error: (level) => level === "error" };
/** Phases that a reader of a finished job seldom wants to read. */
const FOLDED = new Set(["prepare", "init", "download", "upload"]);

class LogView extends HTMLElement {
  #lines = []; // by sequence: #lines[0] is line 1; what is not here yet is a hole
  #total = 0; // how many lines there are, as far as we know
  #shown = "all";
  #times = false;
  #following = false;
  #unseen = 0;
  #caughtUp = false;
  #scrolledTo = 0;
  #sections = [];
  #open = []; // phases under way, the inner ones last
  #frames = [];
  #drawing = false;
  #connection = null;
  #lineHeight = 17;
  #wanted = new Set(); // blocks in sight that are not here
  #fetching = 0;
  #observer = null;
  #acked = 0;
  #ackTimer = 0;
  #rushing = 0;

  connectedCallback() {
    this.#find();
    this.#listen();
    this.#lineHeight = parseFloat(getComputedStyle(this).getPropertyValue("--log-line")) || this.#lineHeight;
    this.#observer = new IntersectionObserver((entries) => this.#sighted(entries), { root: this.box, rootMargin: "600px 0px" });
    this.#follow(this.hasAttribute("follow") && !location.hash.startsWith("#L"));
    this.#begin();
  }

  disconnectedCallback() {
    clearTimeout(this.#ackTimer);
    this.#connection?.close();
    this.#observer?.disconnect();
    window.removeEventListener("hashchange", this);
  }

  handleEvent(event) {
    if (event.type === "hashchange") this.#markFromAddress(true);
  }

  // Parts and controls

  #find() {
    this.box = this.querySelector(".log-lines");
    this.pill = this.querySelector(".log-new");
    this.count = this.querySelector("[data-count]");
    this.empty = this.querySelector(".log-empty");
    this.followButton = this.querySelector("[data-key-follow]");
    this.timesButton = this.querySelector("[data-times]");
    this.foldButton = this.querySelector("[data-fold]");
    this.goTo = this.querySelector("form.go-to");
  }

  #listen() {
    window.addEventListener("hashchange", this);
    this.box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.box.addEventListener("click", (event) => this.#clicked(event));
    this.pill.addEventListener("click", () => this.#follow(true));
    this.followButton.addEventListener("click", () => this.#follow(!this.#following));
    this.timesButton.addEventListener("click", () => this.#toggleTimes());
    this.foldButton.addEventListener("click", () => this.#foldAll(this.foldButton.getAttribute("aria-pressed") !== "true"));
    this.querySelector("[data-copy]").addEventListener("click", (event) => this.#copy(event.currentTarget));
    this.querySelector(".levels").addEventListener("change", (event) => this.#show(event.target.value));
    new LogFind(this.querySelector(".log-find"), `${this.getAttribute("lines")}/search`, (seq) => this.#showHit(seq));
    this.goTo.addEventListener("submit", (event) => {
      event.preventDefault();
      const line = parseInt(this.goTo.elements.line.value, 10);
      if (line > 0) location.hash = `L${line}`;
    });
  }

  // Receiving

  async #begin() {
    const last = Number(this.getAttribute("last-seq") ?? 0);
    if (last > WHOLE_LINES) await this.#skip(last - TAIL_LINES);
    if (!this.isConnected) return;
    this.#connection = new Connection(
      () => `${this.getAttribute("socket")}?after=${this.#cursor()}`,
      (message) => this.#receive(message),
      () => {
        announceJob(); // its status may have changed while nobody could tell us
        return "catching-up";
      },
    );
    this.#connection.open();
  }

  /** Leave lines up to `seq` where they are; only what they say of phases, resources and errors is fetched. */
  async #skip(seq) {
    const events = await this.#ask(`${this.getAttribute("lines")}/events?before=${seq}`);
    if (events === null) return; // then the whole log comes by the socket
    const known = new Map(events.map((line) => [line.seq, line]));
    for (let at = 1; at <= seq; at++) this.#place(at, known.get(at));
    this.#total = seq;
    this.#fillAll();
    document.dispatchEvent(new CustomEvent("log-lines", { detail: { lines: events } }));
  }

  #cursor() {
    return this.#total + this.#frames.reduce((sum, frame) => sum + frame.lines.length, 0);
  }

  #receive(message) {
    if (message.type === "log") this.#queue(message);
    else if (message.type === "current") this.#becomeLive();
    else if (message.type === "job") announceJob();
    else if (message.type === "lease") showLease(message);
  }

  #becomeLive() {
    this.#connection.become("live");
    // What the page found when it opened is not news; what comes from here on is.
    requestAnimationFrame(() => {
      if (!this.#caughtUp) this.#foldWhatIsOver();
      this.#caughtUp = true;
    });
  }

  #queue(frame) {
    const known = this.#cursor() - (frame.first_seq - 1);
    if (known < 0) {
      // Lines are missing in between: ask again from where we are, rather than show a log with a hole.
      this.#connection.restart();
      return;
    }
    this.#frames.push({ last: frame.first_seq + frame.lines.length - 1, lines: frame.lines.slice(known) });
    if (this.#drawing) return;
    this.#drawing = true;
    // A hidden tab gets no animation frames, and must not hold its lines back for ever.
    if (document.hidden) setTimeout(() => this.#draw(), 0);
    else requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#drawing = false;
    if (!this.isConnected) return;
    const frames = this.#frames.splice(0);
    const lines = frames.flatMap((frame) => frame.lines);
    for (const line of lines) {
      line.seq = ++this.#total;
      this.#lines[line.seq - 1] = line;
      this.#place(line.seq, line);
    }
    this.#fillAll();
    this.#settle(lines.length);
    this.#acknowledge(frames.at(-1).last);
    document.dispatchEvent(new CustomEvent("log-lines", { detail: { lines } }));
  }

  /** At once when much has come, since the console waits for it; else a few times a second are enough. */
  #acknowledge(seq) {
    const send = () => {
      clearTimeout(this.#ackTimer);
      this.#ackTimer = 0;
      this.#acked = this.#total;
      this.#connection.send({ type: "ack", seq: this.#total });
    };
    if (seq - this.#acked >= ACK_LINES) send();
    else this.#ackTimer ||= setTimeout(send, ACK_MS);
  }

  #settle(added) {
    this.empty.hidden = this.#total > 0;
    this.count.textContent = `${this.#total.toLocaleString("en")} ${this.#total === 1 ? "line" : "lines"}`;
    this.#markFromAddress(false);
    if (this.#following) return this.#toEnd();
    if (this.#caughtUp) this.#unseen += added;
    this.#showPill();
  }

  async #ask(address) {
    const answer = await fetch(address, { headers: { Accept: "application/json" } }).catch(() => null);
    return answer?.ok ? (await answer.json()).data : null;
  }

  // Phases

  /** Note where a line stands: a phase that starts or ends begins a new section. */
  #place(seq, line) {
    const phase = line?.data?.kind === "phase" ? line.data : null;
    if (phase?.event === "start") {
      this.#open.push(phase.phase);
      this.#section(phase.phase, seq);
    } else if (!this.#sections.length) {
      this.#section("", seq);
    }
    const section = this.#sections.at(-1);
    section.last = seq;
    if (line?.level === "error") section.errors++;
    if (phase?.event === "end") this.#endPhase(phase, section, seq);
    if (this.#shown === "all" || (line && LEVELS[this.#shown](line.level))) this.#blockWithRoom(section).seqs.push(seq);
  }

  #endPhase(phase, section, seq) {
    const own = this.#sections.findLast((one) => one.name === phase.phase);
    if (own) own.seconds = phase.seconds ?? null;
    this.#open = this.#open.filter((name) => name !== phase.phase);
    // What follows belongs to the phase around it, if there is one.
    const around = this.#open.at(-1);
    if (around && section.name === phase.phase) this.#section(around, seq + 1);
  }

  #section(name, first) {
    const section = { name, first, last: first - 1, errors: 0, seconds: null, blocks: [], told: "" };
    section.element = name ? folding(name) : document.createElement("div");
    section.element.addEventListener("toggle", () => this.#following && this.#toEnd());
    section.summary = section.element.querySelector("summary");
    this.box.append(section.element);
    this.#sections.push(section);
  }

  #tell(section) {
    if (!section.summary) return;
    const count = section.last - section.first + 1;
    const took = section.seconds === null ? "" : `, ${duration(section.seconds)}`;
    const told = `${count.toLocaleString("en")} ${count === 1 ? "line" : "lines"}${took}|${section.errors}`;
    if (told === section.told) return;
    section.told = told;
    const [, size, errors] = section.summary.children;
    size.textContent = told.split("|")[0];
    errors.textContent = section.errors ? `${section.errors} ${section.errors === 1 ? "error" : "errors"}` : "";
  }

  /** When a page opens on what is over, the parts that prepared it are folded. Never later: nothing jumps. */
  #foldWhatIsOver() {
    const ended = ["SUCCESS", "FAILED", "CANCELLED"].includes(document.getElementById("job-header")?.dataset.status);
    if (!ended || location.hash.startsWith("#L")) return;
    for (const section of this.#sections) {
      if (FOLDED.has(section.name) && !section.errors && section !== this.#sections.at(-1)) section.element.open = false;
    }
  }

  #foldAll(fold) {
    this.foldButton.setAttribute("aria-pressed", String(fold));
    for (const { summary, element: phase } of this.#sections) if (summary) phase.open = !fold;
  }

  // Drawing

  #blockWithRoom(section) {
    const last = section.blocks.at(-1);
    if (last && !last.absent && last.seqs.length < BLOCK_LINES) return last;
    const block = { section, seqs: [], drawn: 0, absent: false, element: element("div", "log-block") };
    block.gutter = element("pre", "log-gutter");
    block.gutter.setAttribute("aria-hidden", "true");
    block.body = element("pre", "log-body");
    block.element.append(block.gutter, block.body);
    section.element.append(block.element);
    section.blocks.push(block);
    return block;
  }

  #fillAll() {
    for (const section of this.#sections) {
      this.#tell(section);
      // Only the newest of a section can have grown.
      for (let index = section.blocks.length - 1; index >= 0; index--) {
        const block = section.blocks[index];
        if (block.drawn === block.seqs.length || block.absent) break;
        this.#fill(block);
      }
    }
  }

  #fill(block) {
    const fresh = block.seqs.slice(block.drawn);
    if (fresh.some((seq) => !this.#lines[seq - 1])) return this.#leaveRoom(block);
    block.gutter.append(fresh.map((seq) => `${this.#label(seq)}\n`).join(""));
    block.body.append(...this.#nodes(fresh));
    block.drawn = block.seqs.length;
    // So that a block out of sight has its true height, and the scroll bar does not jump.
    block.element.style.containIntrinsicSize = `auto ${block.drawn * this.#lineHeight}px`;
  }

  // What is not here

  #leaveRoom(block) {
    block.absent = true;
    block.element.classList.add("is-absent");
    block.element.style.height = `${block.seqs.length * this.#lineHeight}px`;
    block.element.replaceChildren(element("span", "log-absent", `lines ${block.seqs[0]}–${block.seqs.at(-1)}…`));
    this.#observer.observe(block.element);
    block.element.block = block;
  }

  #sighted(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.#wanted.add(target.block);
      else this.#wanted.delete(target.block);
    }
    this.#fetchWanted();
  }

  /** Who passes more than a screen at a time reads nothing: what lies there is fetched when they rest. */
  #rush() {
    clearTimeout(this.#rushing);
    this.#rushing = setTimeout(() => {
      this.#rushing = 0;
      this.#fetchWanted();
    }, REST_MS);
  }

  #fetchWanted() {
    if (this.#rushing) return;
    for (const block of this.#wanted) {
      if (this.#fetching >= FETCHES) return;
      this.#wanted.delete(block);
      if (block.absent) this.#fetchBlock(block);
    }
  }

  async #fetchBlock(block) {
    this.#fetching++;
    const [first, last] = [block.seqs[0], block.seqs.at(-1)];
    const lines = await this.#ask(`${this.getAttribute("lines")}?after=${first - 1}&limit=${last - first + 1}`);
    this.#fetching--;
    if (lines && block.absent) this.#arrive(block, lines);
    this.#fetchWanted();
  }

  #arrive(block, lines) {
    for (const line of lines) this.#lines[line.seq - 1] = line;
    this.#observer.unobserve(block.element);
    block.absent = false;
    block.element.classList.remove("is-absent");
    block.element.replaceChildren(...block.element.querySelectorAll(".log-mark, .log-hit"), block.gutter, block.body);
    this.#fill(block);
    block.element.style.height = "";
  }

  // Lines

  #label(seq) {
    if (!this.#times) return String(seq);
    return `${new Date(this.#lines[seq - 1].at).toLocaleTimeString([], { hour12: false })}  ${seq}`;
  }

  /** Neighbouring plain lines share one text node; only coloured ones cost an element. */
  #nodes(seqs) {
    const nodes = [];
    let text = "";
    const flush = () => {
      if (text) nodes.push(document.createTextNode(text));
      text = "";
    };
    for (const seq of seqs) {
      const { message, level } = this.#lines[seq - 1];
      if (level === "info" && !isStyled(message)) {
        text += `${plain(message)}\n`;
        continue;
      }
      flush();
      nodes.push(coloured(message, level));
      text = "\n";
    }
    flush();
    return nodes;
  }

  #redraw() {
    const folded = new Set(this.#sections.filter((one) => one.summary && !one.element.open).map((one) => one.first));
    for (const section of this.#sections) {
      for (const block of section.blocks) block.element.remove();
      section.blocks = [];
      for (let seq = section.first; seq <= section.last; seq++) {
        const line = this.#lines[seq - 1];
        if (this.#shown === "all" || (line && LEVELS[this.#shown](line.level))) this.#blockWithRoom(section).seqs.push(seq);
      }
      section.element.hidden = this.#shown !== "all" && !section.blocks.length;
      if (section.summary) section.element.open = this.#shown !== "all" || !folded.has(section.first);
      section.blocks.forEach((block) => this.#fill(block));
    }
    this.#markFromAddress(false);
    if (this.#following) this.#toEnd();
  }

  async #show(level) {
    this.#shown = level;
    this.querySelector(`.levels [value="${level}"]`).checked = true;
    if (level !== "all") await this.#fetchLevel(level);
    if (this.#shown === level) this.#redraw();
  }

  /** Of lines that are not here, those of this level; the rest can stay away. */
  async #fetchLevel(level) {
    let after = 0;
    while (this.#lines.length && this.#hasHole()) {
      const lines = await this.#ask(`${this.getAttribute("lines")}?after=${after}&limit=${PAGE_LINES}&level=${level}`);
      for (const line of lines ?? []) this.#lines[line.seq - 1] ??= line;
      if (!lines || lines.length < PAGE_LINES) return;
      after = lines.at(-1).seq;
    }
  }

  #hasHole() {
    return this.#sections.some((section) => section.blocks.some((block) => block.absent)) || !this.#lines[0];
  }

  #toggleTimes() {
    this.#times = !this.#times;
    this.timesButton.setAttribute("aria-pressed", String(this.#times));
    this.#redraw();
  }

  async #copy(button) {
    const [from, to] = addressed();
    const lines = from ? await this.#ask(`${this.getAttribute("lines")}?after=${from - 1}&limit=${Math.min(PAGE_LINES, to - from + 1)}`) : null;
    const text = lines ? lines.map(({ message }) => `${plain(message)}\n`).join("") : await whole(this.getAttribute("raw"));
    await navigator.clipboard.writeText(text);
    const count = lines ? lines.length : this.#total;
    button.textContent = `Copied ${count.toLocaleString("en")} ${count === 1 ? "line" : "lines"}`;
    setTimeout(() => (button.textContent = "Copy"), 2_000);
  }

  // Following

  #follow(on) {
    this.#following = on;
    this.followButton.setAttribute("aria-pressed", String(on));
    if (on) this.#toEnd();
  }

  #toEnd() {
    this.#unseen = 0;
    this.#showPill();
    this.box.scrollTop = this.box.scrollHeight;
    this.#scrolledTo = this.box.scrollTop;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.box;
    if (Math.abs(scrollTop - this.#scrolledTo) > clientHeight) this.#rush();
    const atEnd = scrollHeight - clientHeight - scrollTop < this.#lineHeight;
    if (scrollTop < this.#scrolledTo - 1 && !atEnd) this.#follow(false);
    else if (atEnd && this.#unseen) this.#follow(true);
    this.#scrolledTo = scrollTop;
  }

  #showPill() {
    this.pill.hidden = !this.#unseen || this.box.scrollHeight <= this.box.clientHeight;
    if (!this.pill.hidden) this.pill.textContent = `${this.#unseen.toLocaleString("en")} new ${this.#unseen === 1 ? "line" : "lines"}`;
  }

  // Links to lines

  get #blocks() {
    return this.#sections.flatMap((section) => section.blocks);
  }

  #clicked(event) {
    const gutter = event.target.closest(".log-gutter");
    const block = gutter && this.#blocks.find((one) => one.gutter === gutter);
    if (!block) return;
    const row = Math.floor((event.clientY - block.element.getBoundingClientRect().top) / this.#lineHeight);
    const seq = block.seqs[row];
    if (!seq) return;
    const [from] = addressed();
    const hash = event.shiftKey && from ? `#L${Math.min(from, seq)}-${Math.max(from, seq)}` : `#L${seq}`;
    history.replaceState(history.state, "", hash);
    this.#markFromAddress(false, true);
  }

  #marked = "";

  /** Mark the lines that the address names, once they are there. */
  #markFromAddress(again, quiet = false) {
    const [from, to] = addressed();
    const complete = from && to <= this.#total;
    const key = complete ? `${from}-${to}-${this.#shown}-${this.#times}` : "";
    if (key === this.#marked && !again) return;
    const first = !this.#marked.startsWith(`${from}-${to}-`);
    this.#marked = key;
    this.box.querySelectorAll(".log-mark").forEach((mark) => mark.remove());
    if (!complete) return;
    for (const block of this.#blocks) this.#cover(block, from, to, "log-mark");
    if ((first || again) && !quiet) this.#goTo(from);
  }

  #cover(block, from, to, className) {
    const start = block.seqs.findIndex((seq) => seq >= from && seq <= to);
    if (start < 0) return;
    const size = block.seqs.filter((seq) => seq >= from && seq <= to).length;
    const mark = element("div", className);
    mark.style.top = `${start * this.#lineHeight}px`;
    mark.style.height = `${size * this.#lineHeight}px`;
    block.element.prepend(mark);
  }

  async #showHit(seq) {
    this.box.querySelectorAll(".log-hit").forEach((hit) => hit.remove());
    if (!seq) return;
    if (this.#shown !== "all") await this.#show("all");
    for (const block of this.#blocks) this.#cover(block, seq, seq, "log-hit");
    this.#goTo(seq);
  }

  #goTo(seq) {
    const block = this.#blocks.find((one) => one.seqs.at(-1) >= seq);
    if (!block) return;
    this.#follow(false);
    if (block.section.summary) block.section.element.open = true;
    const row = block.seqs.findIndex((one) => one >= seq);
    const top = block.element.getBoundingClientRect().top - this.box.getBoundingClientRect().top + this.box.scrollTop;
    this.box.scrollTop = top + row * this.#lineHeight - this.box.clientHeight / 3;
    this.#scrolledTo = this.box.scrollTop;
    this.scrollIntoView({ block: "nearest" });
  }
}

/** A phase of the log. The browser's own find opens it when what it looks for is inside. */
function folding(name) {
  const phase = element("details", "log-phase");
  phase.open = true;
  const summary = element("summary");
  summary.append(element("span", "name", plain(name)), element("span", "soft"), element("span", "errors"));
  phase.append(summary);
  return phase;
}

function coloured(message, level) {
  const span = document.createElement("span");
  if (level !== "info") span.className = level;
  if (isStyled(message)) span.append(...styled(message));
  else span.textContent = plain(message);
  return span;
}

async function whole(address) {
  const answer = await fetch(address);
  return (await answer.text()).split("\n").map(plain).join("\n");
}

/** `#L12` or `#L12-20`, as two numbers. */
function addressed() {
  const match = /^#L(\d+)(?:-(\d+))?$/.exec(location.hash);
  if (!match) return [0, 0];
  return [Number(match[1]), Number(match[2] ?? match[1])];
}

function announceJob() {
  document.body.dispatchEvent(new CustomEvent("job-changed"));
}

/** Heartbeats change nothing that the server would have to draw: only how long ago they were. */
function showLease({ heartbeat_at, expires_at }) {
  for (const [place, at] of [["[data-heartbeat] time", heartbeat_at], ["[data-lease] time", expires_at]]) {
    const time = document.querySelector(`#job-header ${place}`);
    if (time) time.dateTime = at;
  }
}

customElements.define("log-view", LogView);
