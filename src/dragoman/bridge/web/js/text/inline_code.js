/** Sentences of agents in which nothing but code is marked, as in Markdown: notices and errors. */

import { el } from "../page/dom.js";
import { cleanText } from "./safe.js";

// In one line and bounded, so that no text makes the search slow.
const CODE = /(?<!`)`([^`\n]{1,500})`(?!`)/;

/**
 * The text for reading, with its code in elements; all of it is text, and none of it becomes markup.
 *
 * @param {unknown} text
 */
export function withCode(text) {
  // Every second part is what the group of the expression found.
  return cleanText(text)
    .split(CODE)
    .map((part, n) => (n % 2 === 1 ? el("code", {}, part) : part));
}
