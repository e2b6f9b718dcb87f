/**
 * Helpers for building elements. Child strings always become text nodes, never markup.
 *
 *   el("button", { class: "button", type: "button", "aria-label": "Close", onclick: close }, icon("close"))
 *
 * Attributes that are null, undefined or false are omitted. true becomes an empty attribute, `on…` adds a listener, and
 * `dataset` is an object. Children that are null, undefined or false are omitted.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {page.Attributes} attributes
 * @param {page.Child[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...present(children));
  return element;
}

/**
 * @param {page.Child[]} children
 * @returns {Array<Node | string>}
 */
function present(children) {
  return children.flatMap((child) => {
    if (child === null || child === undefined || child === false) return [];
    if (Array.isArray(child)) return present(child);
    return [child instanceof Node ? child : String(child)];
  });
}

/**
 * @param {HTMLElement} element
 * @param {string} name
 * @param {any} value
 */
function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else element.setAttribute(name, value === true ? "" : String(value));
}

// Strokes on a 24 by 24 grid, drawn by us.
/** @type {Record<string, string>} */
const ICONS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  search: "M11 4a7 7 0 1 0 0 14a7 7 0 0 0 0-14M16 16l4.5 4.5",
  archive: "M4 5h16v4H4zM5.5 9v10h13V9M10 12.5h4",
  pencil: "M5 19l1-4L16.5 4.5l3 3L9 18zM14 7l3 3",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  fork: "M7 4v6a4 4 0 0 0 4 4h6M7 10v10M14 10.5l3.5 3.5l-3.5 3.5",
  send: "M12 19V6M6 11.5L12 5.5l6 6",
  stop: "M7.5 7.5h9v9h-9z",
  attach: "M18.5 11.5l-7 7a4.2 4.2 0 0 1-6-6l7.6-7.6a2.8 2.8 0 0 1 4 4l-7.4 7.4a1.4 1.4 0 0 1-2-2l6.6-6.6",
  copy: "M9 9h10v11H9zM15 9V5H5v11h4",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  chevron: "M9 6l6 6l-6 6",
  down: "M6 9l6 6l6-6",
  up: "M6 15l6-6l6 6",
  clock: "M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16M12 8v4.5l3 2",
  sun: "M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1 1M17.4 17.4l1 1M18.4 5.6l-1 1M6.6 17.4l-1 1",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10",
  screen: "M4 5h16v11H4zM9 20h6M12 16v4",
  mode: "M5 8h9M18 8h1M16 6v4M5 16h1M10 16h9M8 14v4",
  wire: "M4 8h13M13.5 4.5L17 8l-3.5 3.5M20 16H7M10.5 12.5L7 16l3.5 3.5",
  chat: "M5 5h14v11h-8l-4 3.5V16H5z",
  help: "M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16M9.8 9.8a2.3 2.3 0 1 1 3.3 2.1c-.8.4-1.1.9-1.1 1.6M12 16.2v.1",
  info: "M12 3.5a8.5 8.5 0 1 0 0 17a8.5 8.5 0 0 0 0-17zM12 11v5M12 8v.1",
  warning: "M12 4.5L21 19.5H3zM12 10v4.5M12 17v.1",
  shield: "M12 3.5l7 2.5v5.5c0 4.2-2.8 7.3-7 9c-4.2-1.7-7-4.8-7-9V6z",
  plug: "M9 4v5M15 4v5M6.5 9h11v2.5a5.5 5.5 0 0 1-11 0zM12 17v3.5",
  file: "M7 3.5h7l4 4v13H7zM14 3.5v4h4",
  image: "M4 5h16v14H4zM8.5 9.2v.1M4 16.5l5-4.5l4 3.5l2.5-2l4.5 4",
  read: "M4.5 5.5c3-.8 5.5-.4 7.5 1.2c2-1.6 4.500-2 7.500-1.200v13c-3-.8-5.500-.4-7.500 1.200c-2-1.600-4.500-2-7.500-1.200zM12 6.700v13",
  edit: "M5 19l.8-3.800L16 5l3 3L8.800 18.200zM14 7l3 3",
  execute: "M4 5h16v14H4zM7.500 9.500l2.500 2.500l-2.500 2.500M12.500 15h4",
  think:
    "M9.500 17.500h5M10.200 20.500h3.600M12 3.500a6 6 0 0 0-3.500 10.900c.6.5 1 1.200 1 2v1h5v-1c0-.8.4-1.500 1-2A6 6 0 0 0 12 3.500",
  fetch:
    "M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16M4.500 12h15M12 4c2.500 2.300 3.500 5 3.500 8s-1 5.700-3.500 8c-2.500-2.300-3.500-5-3.500-8s1-5.700 3.500-8",
  move: "M4 12h15M14.500 7.500L19 12l-4.500 4.500",
  other: "M12 4.500v4M12 15.500v4M4.500 12h4M15.500 12h4M12 10.500a1.500 1.500 0 1 0 0 3a1.500 1.500 0 0 0 0-3",
  link: "M10 14a3.500 3.500 0 0 0 5 0l3.500-3.500a3.500 3.500 0 0 0-5-5L12.500 6.500M14 10a3.500 3.500 0 0 0-5 0L5.500 13.500a3.500 3.500 0 0 0 5 5l1-1",
  external: "M13 5h6v6M19 5l-8 8M16 14v5H5V8h5",
  download: "M12 4v11M7 10.500l5 5l5-5M5 20h14",
  changes: "M12 4v8M8 8h8M8 17.5h8",
  filter: "M4 6h16l-6.500 7.500V19l-3-1.500v-4z",
  pause: "M9 6v12M15 6v12",
  play: "M8 5.500l10.500 6.500L8 18.500z",
  refresh: "M19 12a7 7 0 1 1-2-5M19 4v4.500h-4.500",
  eye: "M3 12c2.500-4.300 5.500-6.500 9-6.500s6.500 2.200 9 6.500c-2.500 4.300-5.500 6.500-9 6.500S5.500 16.300 3 12M12 9.500a2.500 2.500 0 1 0 0 5a2.500 2.500 0 0 0 0-5",
  bell: "M6.5 17h11l-1.500-2.500V10.500a4 4 0 0 0-8 0v4zM10.500 19.500h3M12 6.500V4.500",
  bell_off: "M6.500 17h11l-1.500-2.500V10.500a4 4 0 0 0-8 0v4zM10.500 19.500h3M12 6.500V4.500M5 5l14 14",
  more: "M6 12v.1M12 12v.1M18 12v.1",
};

/**
 * A decorative icon. Its meaning is in the text next to it or in an aria-label.
 *
 * @param {string} name
 * @param {string} className
 */
export function icon(name, className = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", `icon ${className}`.trim());
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name] ?? ICONS.other);
  svg.append(path);
  return svg;
}

/**
 * A button with only an icon. `label` is read aloud and shown as the tooltip.
 *
 * @param {string} name
 * @param {string} label
 * @param {(event: Event) => void} onclick
 * @param {Record<string, any>} attributes
 */
export function iconButton(name, label, onclick, attributes = {}) {
  const { class: more = "", ...others } = attributes;
  const shape = { type: "button", class: `icon-button ${more}`.trim(), "aria-label": label, title: label, onclick };
  return el("button", { ...shape, ...others }, icon(name));
}

/**
 * Replace all children at once.
 *
 * @template {Element} Shape
 * @param {Shape} element
 * @param {page.Child[]} children
 * @returns {Shape}
 */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

/**
 * The first matching element below `root`, as an HTMLElement.
 *
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export function find(root, selector) {
  return root.querySelector(selector);
}

/**
 * The matching element at or above the target of an event.
 *
 * @param {Event} event
 * @param {string} selector
 */
export function closestTo({ target }, selector) {
  return target instanceof Element ? target.closest(selector) : null;
}
