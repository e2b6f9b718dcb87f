/** The worker that compares long texts for the page. */

import { compareTexts } from "../js/conversation/diff.js";

addEventListener("message", ({ data: { id, oldText, newText } }) => {
  postMessage({ id, found: compareTexts(oldText, newText) });
});
