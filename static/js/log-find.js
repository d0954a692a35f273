/** Finding in the whole log: the server looks, also at lines that are not here; the page goes from hit to hit. */

const PAUSE_MS = 250;

export class LogFind {
  #seqs = [];
  #total = 0;
  #at = -1;
  #asked = "";
  #timer = 0;
  #form;
  #address;
  #goTo;

  /** @param {(seq: number) => void} goTo shows a line that was found; 0 shows none */
  constructor(form, address, goTo) {
    this.#form = form;
    this.#address = address;
    this.#goTo = goTo;
    this.input = form.elements.q;
    this.output = form.querySelector("output");
    this.input.addEventListener("input", () => this.#later());
    this.input.addEventListener("keydown", (event) => this.#key(event));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#step(1);
    });
    form.querySelector("[data-previous]").addEventListener("click", () => this.#step(-1));
  }

  #key(event) {
    if (event.key === "Enter" && event.shiftKey) {
      event.preventDefault();
      this.#step(-1);
    } else if (event.key === "Escape") {
      this.input.value = "";
      this.#later();
    }
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#search(), PAUSE_MS);
  }

  async #step(by) {
    if (this.input.value !== this.#asked) return this.#search();
    if (!this.#seqs.length) return;
    this.#at = (this.#at + by + this.#seqs.length) % this.#seqs.length;
    this.#tell();
    this.#goTo(this.#seqs[this.#at]);
  }

  async #search() {
    clearTimeout(this.#timer);
    const text = this.input.value;
    this.#asked = text;
    if (!text) return this.#take([], 0);
    this.output.textContent = "Searching…";
    const answer = await fetch(`${this.#address}?q=${encodeURIComponent(text)}`).catch(() => null);
    if (this.#asked !== text) return; // the reader has typed on
    if (!answer?.ok) return this.#fail();
    const { data, total } = await answer.json();
    this.#take(data, total);
  }

  #take(seqs, total) {
    this.#seqs = seqs;
    this.#total = total;
    this.#at = seqs.length ? 0 : -1;
    for (const button of this.#form.querySelectorAll("button")) button.disabled = !seqs.length;
    this.#tell();
    this.#goTo(seqs[0] ?? 0);
  }

  #fail() {
    this.#asked = "";
    this.output.textContent = "Search failed";
  }

  #tell() {
    if (!this.#asked) this.output.textContent = "";
    else if (!this.#total) this.output.textContent = "No matches";
    else this.output.textContent = `${(this.#at + 1).toLocaleString("en")} of ${this.#total.toLocaleString("en")}`;
  }
}
