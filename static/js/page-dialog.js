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

// What could not be sent at all is said where a refusal would be: beside the button, else above everything.
const UNREACHED = "Cannot reach the console. Nothing was sent. Try again when the connection is back.";

document.addEventListener("htmx:sendError", ({ detail: { target, requestConfig } }) => {
  // A page that brings itself up to date does so again when the connection is back.
  if (!["click", "submit"].includes(requestConfig.triggeringEvent?.type)) return;
  const refusal = document.createElement("p");
  refusal.className = "refusal";
  refusal.setAttribute("role", "alert");
  refusal.dataset.unreached = "";
  refusal.textContent = UNREACHED;
  document.querySelectorAll("[data-unreached]").forEach((earlier) => earlier.remove());
  if (requestConfig.verb === "get") document.getElementById("main")?.prepend(refusal);
  else target.replaceChildren(refusal);
});

document.addEventListener("htmx:afterOnLoad", () => {
  document.querySelectorAll("[data-unreached]").forEach((earlier) => earlier.remove());
});
