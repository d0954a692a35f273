/** `<file-editor>`: files to be written in the page. Line numbers beside each, Tab indents, files come and go.
 *
 * The spare file at the end, which is there for pages without scripts, becomes the pattern of new ones. */

class FileEditor extends HTMLElement {
  #pattern = null;

  connectedCallback() {
    const spare = this.querySelector("[data-spare]");
    if (!spare) return;
    this.#pattern = spare.cloneNode(true);
    this.#pattern.removeAttribute("data-spare");
    if (this.querySelectorAll(".file-edit").length > 1) spare.remove();
    const add = this.querySelector("[data-add]");
    add.hidden = false;
    add.addEventListener("click", () => this.#add());
    this.querySelectorAll(".file-edit").forEach((file) => this.#prepare(file));
  }

  /** The file of that name, with the cursor on that line. Returns whether there is one. */
  show(name, line) {
    const file = [...this.querySelectorAll(".file-edit")].find((one) => nameOf(one).value === name);
    if (!file) return false;
    file.classList.add("is-refused");
    const text = file.querySelector("textarea");
    const lines = text.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    number(file, line);
    text.focus({ preventScroll: true });
    text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    file.querySelector(".gutter .bad")?.scrollIntoView({ block: "center" });
    return true;
  }

  #add() {
    const file = this.#pattern.cloneNode(true);
    this.querySelector("[data-add]").parentElement.before(file);
    this.#prepare(file);
    nameOf(file).focus();
  }

  #prepare(file) {
    const text = file.querySelector("textarea");
    const remove = file.querySelector("[data-remove]");
    remove.hidden = false;
    remove.addEventListener("click", () => {
      file.remove();
      this.dispatchEvent(new Event("change", { bubbles: true }));
    });
    nameOf(file).addEventListener("input", () => {
      text.setAttribute("aria-label", `Content of ${nameOf(file).value}`);
      remove.setAttribute("aria-label", `Remove ${nameOf(file).value}`);
    });
    text.addEventListener("input", () => number(file));
    text.addEventListener("keydown", indent);
    remove.setAttribute("aria-label", `Remove ${nameOf(file).value || "the new file"}`);
    number(file);
  }
}

function nameOf(file) {
  return file.querySelector("input[name=file-name]");
}

function number(file, bad = 0) {
  const count = file.querySelector("textarea").value.split("\n").length;
  const gutter = file.querySelector(".gutter");
  gutter.textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
  if (!bad || bad > count) return;
  const mark = document.createElement("span");
  mark.className = "bad";
  const range = document.createRange();
  const start = gutter.textContent.split("\n", bad - 1).join("\n").length + (bad > 1 ? 1 : 0);
  range.setStart(gutter.firstChild, start);
  range.setEnd(gutter.firstChild, start + String(bad).length);
  range.surroundContents(mark);
}

/** Tab indents, and Escape then Tab leaves, so that nobody is caught in the field. */
function indent(event) {
  if (event.key === "Escape") event.target.dataset.leaving = "";
  else if (event.key === "Tab" && !event.shiftKey && !("leaving" in event.target.dataset)) {
    event.preventDefault();
    event.target.setRangeText("  ", event.target.selectionStart, event.target.selectionEnd, "end");
    event.target.dispatchEvent(new Event("input", { bubbles: true }));
  } else if (event.key !== "Shift") delete event.target.dataset.leaving;
}

customElements.define("file-editor", FileEditor);
