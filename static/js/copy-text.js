/** `<copy-text>`: puts a copy button after what it holds; the text copied is the whole, also where it is shown short. */

import { changeIcon, icon } from "./icons.js";

class CopyText extends HTMLElement {
  connectedCallback() {
    if (this.querySelector(".copy") || !navigator.clipboard) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.setAttribute("aria-label", `Copy ${this.getAttribute("what") ?? ""}`.trim());
    button.title = "Copy";
    button.append(icon("copy"));
    button.addEventListener("click", () => this.#copy(button));
    this.append(button);
  }

  async #copy(button) {
    await navigator.clipboard.writeText(this.getAttribute("text") ?? this.firstElementChild.textContent);
    button.dataset.copied = "";
    changeIcon(button.firstElementChild, "copied");
    setTimeout(() => {
      delete button.dataset.copied;
      changeIcon(button.firstElementChild, "copy");
    }, 1_500);
  }
}

customElements.define("copy-text", CopyText);
