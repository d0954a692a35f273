/** One page after the other without a reload, though parts of it are renewed by pushes while an answer is awaited.
 *
 * The link or form that was pressed may be gone by then. Its answer must still change the address, and must not
 * pull back whoever has gone on meanwhile. */

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

function takeAnswer(event) {
  if (isTooLate(event.detail)) event.preventDefault();
  // htmx looks at the link for this, and has forgotten that it was one if it was replaced.
  else if (event.detail.boosted) event.detail.etc.push ??= "true";
}

document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  askedAt.set(detail.xhr, ++asked);
  if (isPage(detail)) wentAt = asked;
  // On the element itself: once it is gone from the page, its events no longer arrive here.
  if (!watched.has(detail.elt)) detail.elt.addEventListener("htmx:beforeOnLoad", takeAnswer);
  watched.add(detail.elt);
});
