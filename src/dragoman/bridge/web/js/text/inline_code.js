/** Agents' notices and errors, in which only inline code is rendered. */

import { el } from "../page/dom.js";
import { cleanText } from "./safe.js";

// Within one line and bounded, so that no text makes the search slow.
const CODE = /(?<!`)`([^`\n]{1,500})`(?!`)/;

/**
 * The cleaned text with code in elements. No part of it becomes markup.
 *
 * @param {unknown} text
 */
export function withCode(text) {
  // Every second part is a match of the group.
  return cleanText(text)
    .split(CODE)
    .map((part, n) => (n % 2 === 1 ? el("code", {}, part) : part));
}
