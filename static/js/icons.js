/** Icons for elements that are made in the browser: the same sprite as the server's pages use. */

const SVG = "http://www.w3.org/2000/svg";
const sprite = new URL("../icons.svg", import.meta.url).pathname;

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${sprite}#${name}`);
  svg.append(use);
  return svg;
}

export function changeIcon(svg, name) {
  const use = svg.firstElementChild;
  const href = `${sprite}#${name}`;
  if (use.getAttribute("href") !== href) use.setAttribute("href", href);
}

/** An element with a class and a text; text is only ever set as text. */
export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
