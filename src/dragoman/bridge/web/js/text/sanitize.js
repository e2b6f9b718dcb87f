/**
 * The only module in which text becomes markup: the HTML from the bridge's /render.
 *
 * The bridge has already sanitized it. It is checked again here, so that a mistake in the bridge does no harm: tags
 * and attributes that are not on these lists do not reach the document.
 */

import { trustMarkup } from "../page/trusted.js";

const TAGS = new Set(
  `a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul`.split(
    /\s+/,
  ),
);
/** @type {Record<string, string[]>} */
const ATTRIBUTES = { a: ["href", "title"], div: ["data-language"], ol: ["start"] };
const CLASS = /^[\w-]{1,40}$/;

/**
 * The nodes of rendered markdown, as a fragment.
 *
 * @param {string} html
 */
export function renderedNodes(html) {
  const template = document.createElement("template");
  template.innerHTML = trustMarkup(html);
  for (const element of template.content.querySelectorAll("*")) keepOrDrop(element);
  return template.content;
}

/** @param {Element} element */
function keepOrDrop(element) {
  const tag = element.localName;
  if (!TAGS.has(tag)) {
    element.replaceWith(document.createTextNode(element.textContent));
    return;
  }
  for (const { name, value } of [...element.attributes]) {
    if (name === "class")
      element.setAttribute(
        "class",
        value
          .split(/\s+/)
          .filter((one) => CLASS.test(one))
          .join(" "),
      );
    else if (!ATTRIBUTES[tag]?.includes(name)) element.removeAttribute(name);
  }
  if (element instanceof HTMLAnchorElement) guardLink(element);
}

/**
 * Restrict a link to allowed URLs, in a new tab and without a referrer.
 *
 * @param {HTMLAnchorElement} anchor
 */
export function guardLink(anchor) {
  const address = safeAddress(anchor.getAttribute("href"));
  if (address === null) anchor.removeAttribute("href");
  else {
    anchor.rel = "noopener noreferrer";
    anchor.target = "_blank";
  }
  return anchor;
}

/**
 * A text as a URL, or null if it is invalid or its scheme is not allowed.
 *
 * @param {string | null | undefined} text
 */
export function safeAddress(text) {
  try {
    const url = new URL(text ?? "");
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}
