/** Comparing texts: short ones at once, long ones in a worker, so that the page stays responsive. */

import { startWorker } from "../page/trusted.js";
import { compareTexts } from "./diff.js";

// Comparing texts of this size takes less than a millisecond.
const MOST_CHARS = 50_000;

/** @type {Worker | null} */
let worker = null;
let last = 0;
/** @type {Map<number, { resolve: (found: page.Comparison) => void, reject: (reason: Error) => void }>} */
const waiting = new Map();

/**
 * The comparison of two short texts, or null if they are long. Then `compareLong` compares them.
 *
 * @param {string} oldText
 * @param {string} newText
 */
export function compareShort(oldText, newText) {
  return oldText.length + newText.length <= MOST_CHARS ? compareTexts(oldText, newText) : null;
}

/**
 * @param {string} oldText
 * @param {string} newText
 * @returns {Promise<page.Comparison>}
 */
export function compareLong(oldText, newText) {
  worker ??= start();
  last += 1;
  worker.postMessage({ id: last, oldText, newText });
  return new Promise((resolve, reject) => waiting.set(last, { resolve, reject }));
}

function start() {
  const started = startWorker("diff.js");
  started.addEventListener("message", ({ data }) => {
    waiting.get(data.id)?.resolve(data.found);
    waiting.delete(data.id);
  });
  started.addEventListener("error", () => {
    for (const { reject } of waiting.values()) reject(new Error("the worker that compares texts stopped"));
    waiting.clear();
    worker = null;
  });
  return started;
}
