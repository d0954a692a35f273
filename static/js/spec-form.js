/** `<spec-form>`: shows a refusal where it belongs, and keeps a draft while the tab is open.
 *
 * A refusal names its field, and its file and line. What was typed into a field for secrets is never kept. */

class SpecForm extends HTMLElement {
  connectedCallback() {
    this.addEventListener("htmx:afterSwap", () => this.#point());
    this.addEventListener("htmx:beforeRequest", () => this.#forget());
    if (!this.#key) return;
    this.#restore();
    this.addEventListener("input", () => this.#keep());
    this.addEventListener("htmx:afterRequest", (event) => {
      const created = event.detail.successful && event.detail.elt === this.querySelector("form");
      if (created) sessionStorage.removeItem(this.#key);
    });
  }

  get #key() {
    const draft = this.getAttribute("draft");
    return draft ? `draft ${draft}` : null;
  }

  #point() {
    const refusal = this.querySelector(".refusal");
    if (!refusal) return;
    const { field, file, line } = refusal.dataset;
    if (file && this.querySelector("file-editor")?.show(file, Number(line || 1))) return;
    const place = field && this.#placeOf(field);
    if (!place) return;
    place.classList.add("is-refused");
    const control = place.querySelector("input:not([type=hidden]), select, textarea");
    control?.setAttribute("aria-invalid", "true");
    control?.focus({ preventScroll: false });
  }

  /** `variables.zones[1]` is a part of the field of `variables.zones`. */
  #placeOf(field) {
    return [...this.querySelectorAll("[data-field]")].find(
      ({ dataset }) => field === dataset.field || field.startsWith(`${dataset.field}[`) || field.startsWith(`${dataset.field}.`),
    );
  }

  #forget() {
    this.querySelectorAll(".is-refused").forEach((place) => place.classList.remove("is-refused"));
    this.querySelectorAll("[aria-invalid]").forEach((control) => control.removeAttribute("aria-invalid"));
  }

  #fields() {
    const kept = "input[name]:not([type=hidden]):not([type=password]):not([type=file]), select[name], textarea[name]";
    return [...this.querySelectorAll(kept)].filter((field) => !field.name.startsWith("file-"));
  }

  #keep() {
    const files = [...this.querySelectorAll(".file-edit")].map((file) => [
      file.querySelector("[name=file-name]").value,
      file.querySelector("[name=file-text]").value,
    ]);
    const fields = Object.fromEntries(this.#fields().map((field) => [field.name, field.value]));
    sessionStorage.setItem(this.#key, JSON.stringify({ fields, files }));
  }

  #restore() {
    const draft = JSON.parse(sessionStorage.getItem(this.#key) ?? "null");
    if (!draft) return;
    for (const field of this.#fields()) if (draft.fields[field.name] !== undefined) field.value = draft.fields[field.name];
    const add = this.querySelector("[data-add]");
    while (add && this.querySelectorAll(".file-edit").length < draft.files.length) add.click();
    this.querySelectorAll(".file-edit").forEach((file, index) => {
      const [name, text] = draft.files[index] ?? ["", ""];
      file.querySelector("[name=file-name]").value = name;
      file.querySelector("[name=file-text]").value = text;
      file.querySelector("[name=file-text]").dispatchEvent(new Event("input"));
    });
  }
}

customElements.define("spec-form", SpecForm);
