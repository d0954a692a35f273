/** Terminal colours as spans, everything else of a terminal's language removed. Text is only ever set as text. */

// An escape sequence: CSI (… letter), OSC (… BEL or ST), or a two-character one.
const ESCAPES = /\u001b(?:\[([0-9;:]*)([ -/]*[@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;
// What remains of control characters would move the cursor or hide text. Tabs stay.
const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g;
// Marks that reorder text would let a name show as another: shown, not obeyed.
const REORDERING = /[\u202a-\u202e\u2066-\u2069]/g;

export function harmless(text) {
  return text.replace(CONTROLS, "").replace(REORDERING, (mark) => `<U+${mark.codePointAt(0).toString(16).toUpperCase()}>`);
}

/** The line as it reads, without any colour. */
export function plain(text) {
  return text.includes("\u001b") ? harmless(text.replace(ESCAPES, "")) : harmless(text);
}

export function isStyled(text) {
  return text.includes("\u001b[");
}

/** The line as nodes: text, and spans with classes. */
export function styled(text) {
  const nodes = [];
  let classes = new Set();
  let at = 0;
  const put = (piece) => {
    const clean = harmless(piece);
    if (!clean) return;
    if (!classes.size) return nodes.push(document.createTextNode(clean));
    const span = document.createElement("span");
    span.className = [...classes].join(" ");
    span.textContent = clean;
    nodes.push(span);
  };
  for (const match of text.matchAll(ESCAPES)) {
    put(text.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === "m") classes = applied(classes, match[1]);
  }
  put(text.slice(at));
  return nodes;
}

function applied(classes, parameters) {
  let next = new Set(classes);
  for (const code of parameters.split(/[;:]/).map(Number)) {
    if (code === 0) next = new Set();
    else if (code === 1) next.add("ansi-bold");
    else if (code === 4) next.add("ansi-underline");
    else if (code === 22) next.delete("ansi-bold");
    else if (code === 24) next.delete("ansi-underline");
    else if (code === 38 || code === 48) break; // 256 colours and RGB: what follows is not a code
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97) || code === 39) {
      next = new Set([...next].filter((name) => !/^ansi-\d/.test(name)));
      if (code !== 39) next.add(`ansi-${code}`);
    }
  }
  return next;
}
