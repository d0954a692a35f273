/** `<plan-changes>`: opening all changes at once, also those that come later, and finding one in a short list. */

class PlanChanges extends HTMLElement {
  #open = false;

  connectedCallback() {
    this.tools = this.querySelector("[data-tools]");
    if (!this.tools) return;
    this.tools.hidden = false;
    this.all = this.querySelector("[data-open-all]");
    // A long list is searched by the server; a short one that is all here is searched here.
    this.tools.querySelector("input")?.addEventListener("input", (event) => this.#find(event.target.value));
    this.all.addEventListener("click", () => this.#openAll(!this.#open));
    this.addEventListener("htmx:afterSwap", () => this.#open && this.#openAll(true));
  }

  #find(text) {
    const wanted = text.trim().toLowerCase();
    let found = 0;
    for (const group of this.querySelectorAll(".changes")) {
      const changes = [...group.querySelectorAll(".change")];
      for (const change of changes) change.hidden = !change.dataset.address.toLowerCase().includes(wanted);
      const shown = changes.filter((change) => !change.hidden).length;
      group.hidden = shown === 0;
      found += shown;
    }
    this.querySelector("[data-none]").hidden = found > 0 || !wanted;
  }

  #openAll(open) {
    this.#open = open;
    this.all.setAttribute("aria-pressed", String(open));
    this.all.textContent = open ? "Hide all attributes" : "Show all attributes";
    for (const change of this.querySelectorAll(".change")) change.open = open;
  }
}

customElements.define("plan-changes", PlanChanges);
