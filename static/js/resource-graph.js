/** `<resource-graph src="…">`: the picture of the plan's resources, coloured as they finish.
 *
 * The server lays it out; what each resource is doing comes from `<resource-progress>`. */

const INDEX = /\[(?:\d+|"(?:[^"\\]|\\.)*")\]/g;
const MARKS = { waiting: "○", running: "◔", done: "✓", failed: "✗", cancelled: "–" };
const WORDS = { waiting: "waiting", running: "running", done: "done", failed: "failed", cancelled: "interrupted" };
const SMALLEST = 0.2;
const LARGEST = 2.5;
/** A plan that is being made has no picture yet: how often to ask for it. */
const AGAIN_MS = 1_500;

class ResourceGraph extends HTMLElement {
  #boxes = new Map(); // by key: { count, elements, statuses: Map(address → status) }
  #grain = "instance";
  #scale = 1;
  #fetching = false;
  #askedAt = 0;
  #again = 0;

  connectedCallback() {
    document.addEventListener("resources-changed", this);
    document.body.addEventListener("job-changed", this);
    this.#fetch();
  }

  disconnectedCallback() {
    clearTimeout(this.#again);
    document.removeEventListener("resources-changed", this);
    document.body.removeEventListener("job-changed", this);
  }

  handleEvent(event) {
    if (event.type === "resources-changed" && this.#boxes.size) this.#take(event.detail.resources);
    else if (!this.#boxes.size) this.#fetchSoon();
  }

  /** Never dropped: the last change of a job may be the one that brings the picture. */
  #fetchSoon() {
    const wait = this.#fetching ? AGAIN_MS : Math.max(0, AGAIN_MS - (Date.now() - this.#askedAt));
    this.#again ||= setTimeout(() => {
      this.#again = 0;
      if (this.#fetching) this.#fetchSoon();
      else if (!this.#boxes.size) this.#fetch();
    }, wait);
  }

  async #fetch() {
    this.#fetching = true;
    this.#askedAt = Date.now();
    const answer = await fetch(this.getAttribute("src"), { headers: { Accept: "text/html" } }).catch(() => null);
    this.#fetching = false;
    if (answer?.status === 204) this.hidden = true;
    if (!answer?.ok || answer.status === 204 || answer.redirected || !this.isConnected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    this.#show(document.importNode(page.querySelector(".graph"), true));
  }

  #show(graph) {
    this.#grain = graph.dataset.grain;
    for (const element of graph.querySelectorAll("[data-key]")) {
      const { key, members } = element.dataset;
      const box = this.#boxes.get(key) ?? { count: Number(members), elements: [], statuses: new Map() };
      box.elements.push(element);
      this.#boxes.set(key, box);
    }
    this.querySelector(".graph")?.remove();
    this.append(graph);
    this.hidden = false;
    this.svg = graph.querySelector("svg");
    if (this.svg) this.#makeMovable(graph.querySelector(".graph-box"));
    this.#take(document.querySelector("resource-progress")?.resources ?? []);
  }

  // Colours

  #take(resources) {
    const touched = new Set();
    for (const resource of resources) {
      const box = this.#boxes.get(keyOf(this.#grain, resource));
      if (!box || box.statuses.get(resource.address) === resource.status) continue;
      box.statuses.set(resource.address, resource.status);
      touched.add(box);
    }
    touched.forEach(paint);
  }

  // Size and place

  #makeMovable(area) {
    this.area = area;
    this.querySelector(".graph-tools").addEventListener("click", (event) => {
      const wish = event.target.closest("[data-zoom]")?.dataset.zoom;
      if (wish) this.#zoom(wish === "fit" ? this.#fitting() : this.#scale * (wish === "in" ? 1.25 : 0.8));
    });
    area.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    area.addEventListener("pointerdown", (event) => this.#drag(event));
    this.#zoom(this.#fitting());
  }

  #fitting() {
    const room = this.area.clientWidth - 16;
    return Math.min(1, Math.max(0.45, room / Number(this.svg.dataset.width)));
  }

  #zoom(scale) {
    this.#scale = Math.min(LARGEST, Math.max(SMALLEST, scale));
    this.svg.setAttribute("width", Number(this.svg.dataset.width) * this.#scale);
    this.svg.setAttribute("height", Number(this.svg.dataset.height) * this.#scale);
  }

  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.#zoom(this.#scale * (event.deltaY < 0 ? 1.1 : 0.9));
  }

  #drag(event) {
    if (event.button !== 0) return;
    const { area } = this;
    const from = { x: event.clientX + area.scrollLeft, y: event.clientY + area.scrollTop };
    const move = (moved) => area.scrollTo(from.x - moved.clientX, from.y - moved.clientY);
    const end = () => {
      area.removeEventListener("pointermove", move);
      area.removeEventListener("pointerup", end);
    };
    area.setPointerCapture(event.pointerId);
    area.addEventListener("pointermove", move);
    area.addEventListener("pointerup", end);
  }
}

/** Which box a resource is in: the same as `Member.key` on the server. */
function keyOf(grain, { address, module, type }) {
  if (grain === "instance") return address;
  if (grain === "resource") return address.replace(INDEX, "");
  const path = (module ?? "").replace(INDEX, "");
  if (grain === "type") return path ? `${path}.${type}` : type;
  return path.split(".").slice(0, 2).join(".") || "root module";
}

function paint({ count, elements, statuses }) {
  const all = [...statuses.values()];
  const done = all.filter((status) => status === "done").length;
  const status = whole(all, done, count);
  for (const element of elements) {
    if (element.localName === "li") {
      element.querySelector("[data-word]").textContent = count > 1 && done < count ? `${WORDS[status]}, ${done} of ${count} done` : WORDS[status];
      continue;
    }
    element.setAttribute("class", `box is-${status}`);
    element.querySelector(".mark").textContent = MARKS[status];
    const bar = element.querySelector(".done");
    bar.setAttribute("width", (Number(bar.dataset.full) * done) / count);
  }
}

/** What a box with several resources shows: the worst, then what still moves. */
function whole(all, done, count) {
  for (const status of ["failed", "running", "cancelled"]) if (all.includes(status)) return status;
  if (done >= count) return "done";
  return done ? "running" : "waiting";
}

customElements.define("resource-graph", ResourceGraph);
