/** `<resource-picker kind="subnet" source="…">`: suggests what was found in the account while one types.
 *
 * The field stays a field for free text: without scripts, or with nothing fetched yet, people type. In a field of
 * JSON the choice is appended to the list that stands there. */

const WAIT_MS = 150;
let count = 0;

class ResourcePicker extends HTMLElement {
  #field = null;
  #list = document.createElement("datalist");
  #hint = document.createElement("p");
  #timer = 0;
  #asked = 0;

  connectedCallback() {
    if (this.#field) return;
    const text = this.querySelector("textarea");
    this.#field = text ? this.#adder(text) : this.querySelector("input");
    if (!this.#field) return;
    this.#list.id = `found-${++count}`;
    this.#hint.className = "hint";
    this.#hint.setAttribute("role", "status");
    this.append(this.#list, this.#hint);
    this.#field.setAttribute("list", this.#list.id);
    this.#field.addEventListener("focus", () => this.#later());
    this.#field.addEventListener("input", () => this.#later());
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fill(), WAIT_MS);
  }

  async #fill() {
    const asked = ++this.#asked;
    const response = await fetch(this.#address(), { headers: { Accept: "application/json" } }).catch(() => null);
    if (!response?.ok || asked !== this.#asked) return;
    const { options, has_more: more } = await response.json();
    this.#list.replaceChildren(...options.map(({ value, label }) => new Option(label, value)));
    this.#hint.textContent = this.#words(options.length, more);
  }

  #words(found, more) {
    if (more) return `More than ${found} found in the account; type to narrow down.`;
    if (found) return `${found} found in the account.`;
    return this.#field.value ? "" : "No resources discovered yet; type the value.";
  }

  #address() {
    const form = this.closest("form");
    const chosen = (name) => this.getAttribute(name) ?? form?.elements[name]?.value ?? "";
    const query = new URLSearchParams({ kind: this.getAttribute("kind"), q: this.#field.value, identity: chosen("identity") });
    if (this.getAttribute("kind") !== "region") query.set("region", chosen("region"));
    return `${this.getAttribute("source")}?${query}`;
  }

  /** A field of its own beside a list, whose choice goes to the end of the list. */
  #adder(text) {
    const input = document.createElement("input");
    input.className = "mono";
    input.placeholder = "Search to add";
    input.setAttribute("aria-label", `Add to ${text.name.replace(/^var-/, "")}`);
    input.autocomplete = "off";
    input.addEventListener("change", () => this.#append(text, input));
    text.after(input);
    return input;
  }

  #append(text, input) {
    if (![...this.#list.options].some(({ value }) => value === input.value)) return;
    const listed = parsed(text.value);
    if (!listed) return;
    text.value = JSON.stringify([...listed, input.value].filter((one, index, all) => all.indexOf(one) === index));
    text.dispatchEvent(new Event("input", { bubbles: true }));
    input.value = "";
  }
}

function parsed(text) {
  if (!text.trim()) return [];
  try {
    const value = JSON.parse(text);
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

customElements.define("resource-picker", ResourcePicker);
