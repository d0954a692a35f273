/** `<theme-switch>`: light, dark, or as the system says. Kept in a cookie, so that the server's first byte knows. */

const YEAR_SECONDS = 31_536_000;

class ThemeSwitch extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this);
    this.#show();
  }

  handleEvent(event) {
    const button = event.target.closest("button");
    if (!button) return;
    const theme = button.value;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `slipway_theme=${theme}; path=/; max-age=${theme ? YEAR_SECONDS : 0}; samesite=lax${secure}`;
    this.#show();
  }

  #show() {
    const theme = document.documentElement.dataset.theme ?? "";
    for (const button of this.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.value === theme));
    }
  }
}

customElements.define("theme-switch", ThemeSwitch);
