/** One page after the other without a reload, though parts of it are renewed by pushes while an answer is awaited.
 *
 * The link or form that was pressed may be gone by then. Its answer must still change the address, and must not
 * pull back whoever has gone on meanwhile. And while somebody presses a button, it stays: a button that is replaced
 * between down and up was never clicked. */

let asked = 0;
let wentAt = 0;
const askedAt = new WeakMap();
const watched = new WeakSet();

function isPage({ target, boosted }) {
  return boosted || target === document.body;
}

/** A form's answer that says where to go. */
function sendsOn({ xhr }) {
  return xhr.getResponseHeader("HX-Location") !== null || xhr.getResponseHeader("HX-Redirect") !== null;
}

/** Somebody who went to another page meanwhile stays there, and a part that is no longer shown is not drawn. */
function isTooLate(detail) {
  if (isPage(detail) || sendsOn(detail)) return askedAt.get(detail.xhr) < wentAt;
  return !detail.target.isConnected;
}

/** Pushes arrive as events, such as `jobs-changed`; what nobody asked for by hand can wait. */
function isPush({ requestConfig }) {
  return requestConfig.triggeringEvent?.type.endsWith("-changed") ?? false;
}

let pressed = null;
const waiting = new Set();

function release() {
  pressed = null;
  waiting.forEach((name) => document.body.dispatchEvent(new CustomEvent(name)));
  waiting.clear();
}

document.addEventListener("pointerdown", ({ target }) => (pressed = target), true);
// After the click, which follows the end of the press at once.
for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => setTimeout(release), true);
window.addEventListener("blur", release);

function takeAnswer(event) {
  const { detail } = event;
  if (isTooLate(detail)) {
    event.preventDefault();
  } else if (isPush(detail) && detail.target.contains(pressed)) {
    event.preventDefault();
    waiting.add(detail.requestConfig.triggeringEvent.type);
  } else if (detail.boosted) {
    // htmx looks at the link for this, and has forgotten that it was one if it was replaced.
    detail.etc.push ??= "true";
  }
}

document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  askedAt.set(detail.xhr, ++asked);
  if (isPage(detail)) wentAt = asked;
  // On the element itself: once it is gone from the page, its events no longer arrive here.
  if (!watched.has(detail.elt)) detail.elt.addEventListener("htmx:beforeOnLoad", takeAnswer);
  watched.add(detail.elt);
});
