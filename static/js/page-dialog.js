/** The page's one dialog: htmx fills it, then it opens. Also: menus that close, and focus after a boosted page. */

const dialog = () => document.getElementById("dialog");

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target === dialog() && !dialog().open) dialog().showModal();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
  if (event.target === dialog()) dialog().close(); // the backdrop belongs to the dialog
  for (const menu of document.querySelectorAll("details.organization[open], details.person[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// What was asked for in it, such as a secret, does not stay in the page. The event does not bubble.
document.addEventListener("close", (event) => event.target === dialog() && dialog().replaceChildren(), true);

// A page that came without a reload is announced and reached as one that did.
document.addEventListener("htmx:historyRestore", () => document.getElementById("main")?.focus());
document.addEventListener("htmx:pushedIntoHistory", () => {
  window.scrollTo(0, 0);
  document.getElementById("main")?.focus({ preventScroll: true });
});

// What could not be sent at all is said beside the button, as a refusal is.
document.addEventListener("htmx:sendError", (event) => {
  const place = event.detail.elt.closest?.("form")?.parentElement?.querySelector("[data-refusal]");
  if (!place) return;
  const refusal = document.createElement("p");
  refusal.className = "refusal";
  refusal.setAttribute("role", "alert");
  refusal.textContent = "The console cannot be reached, so nothing was asked of it. Try again when the connection is back.";
  place.replaceChildren(refusal);
});
