/** `<live-rows topic="jobs">`: a list that renews itself, without moving anything under the pointer.
 *
 * Rows carry `data-key`. While the pointer or the focus is in the list, known rows change in place and
 * new ones wait behind a button. */

class LiveRows extends HTMLElement {
  #fetching = false;
  #again = false;
  #pending = null;

  connectedCallback() {
    document.body.addEventListener(`${this.getAttribute("topic")}-changed`, this);
    this.addEventListener("pointerleave", () => this.#settle());
  }

  disconnectedCallback() {
    document.body.removeEventListener(`${this.getAttribute("topic")}-changed`, this);
  }

  async handleEvent() {
    this.#again = this.#fetching;
    if (this.#fetching) return;
    this.#fetching = true;
    try {
      const next = await fetchSame(this);
      if (next && this.isConnected) this.#take(next);
    } finally {
      this.#fetching = false;
      if (this.#again) this.handleEvent();
    }
  }

  #take(next) {
    const shape = (list) => Boolean(list.querySelector("tbody"));
    if (!shape(this) || !shape(next)) this.replaceChildren(...next.childNodes);
    else if (this.matches(":hover, :focus-within")) this.#hold(next);
    else merge(this, next);
  }

  #hold(next) {
    const known = rowsOf(this);
    const rows = [...rowsOf(next)];
    rows.filter(([key]) => known.has(key)).forEach(([key, row]) => replace(known.get(key), row));
    const fresh = rows.filter(([key]) => !known.has(key)).length;
    this.#pending = next;
    this.querySelector(".new-rows")?.remove();
    if (fresh) this.prepend(this.#button(fresh));
  }

  #button(count) {
    const button = document.createElement("button");
    button.className = "new-rows";
    button.type = "button";
    button.textContent = `${count} new`;
    button.addEventListener("click", () => this.#settle());
    return button;
  }

  #settle() {
    this.querySelector(".new-rows")?.remove();
    if (this.#pending) merge(this, this.#pending);
    this.#pending = null;
  }
}

async function fetchSame(list) {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!response?.ok || response.redirected) return null;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.getElementById(list.id);
}

function rowsOf(list) {
  return new Map([...list.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row]));
}

function merge(list, next) {
  const known = rowsOf(list);
  const rows = [...rowsOf(next)].map(([key, row]) => (known.has(key) ? replace(known.get(key), row) : adopt(row)));
  list.querySelector("tbody").replaceChildren(...rows);
}

/** The row itself stays, so that the chosen one stays chosen; unchanged cells stay too. */
function replace(old, row) {
  const cells = [...row.children];
  [...old.children].forEach((cell, index) => {
    if (cells[index] && !cell.isEqualNode(cells[index])) cell.replaceWith(adopt(cells[index]));
  });
  return old;
}

function adopt(node) {
  return document.importNode(node, true);
}

customElements.define("live-rows", LiveRows);
