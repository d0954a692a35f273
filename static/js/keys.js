/** The keyboard: `?` shows the keys, `g` and a letter goes somewhere, `j` and `k` move in lists. */

let leaderUntil = 0;

const GO = { d: "dashboard", s: "specs", j: "jobs", r: "runners" };

function typing(target) {
  return target.closest?.("input, textarea, select, [contenteditable]") !== null;
}

function move(step) {
  const rows = [...document.querySelectorAll("tbody tr[data-key]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("chosen"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  rows.forEach((row) => row.classList.toggle("chosen", row === next));
  next.querySelector("a.main-link")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function press(selector) {
  document.querySelector(selector)?.click();
}

const KEYS = {
  "?": () => document.getElementById("keys")?.showModal(),
  j: () => move(1),
  k: () => move(-1),
  p: () => press("[data-key-plan]"),
  a: () => press("[data-key-review]"),
  f: () => press("[data-key-follow]"),
  // A page's own search goes before the one for everything.
  "/": () => (document.querySelector("main [data-key-search]") ?? document.querySelector("[data-key-search]"))?.focus(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
  if (leaderUntil > Date.now() && GO[event.key]) {
    leaderUntil = 0;
    press(`[data-place="${GO[event.key]}"]`);
  } else if (event.key === "g") {
    leaderUntil = Date.now() + 1_500;
  } else if (KEYS[event.key]) {
    KEYS[event.key]();
  } else {
    return;
  }
  event.preventDefault();
});
