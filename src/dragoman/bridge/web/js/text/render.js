/** Requests the HTML of Markdown from the bridge: a few at a time, and each text once. */

const AT_ONCE = 3;
const KEPT = 400;
export const LONGEST_CHARS = 100_000;

const kept = new Map();
/** @type {Array<{ text: string, resolve: (html: string | null) => void }>} */
const queue = [];
let running = 0;

/**
 * The HTML of a text, or null if rendering failed.
 *
 * @param {string} text
 */
export function renderMarkdown(text) {
  const known = kept.get(text);
  if (known !== undefined) return Promise.resolve(known);
  if (text.length > LONGEST_CHARS) return Promise.resolve(null);
  return new Promise((resolve) => {
    queue.push({ text, resolve });
    next();
  });
}

function next() {
  if (running >= AT_ONCE) return;
  // Newest first, because the user looks at it.
  const newest = queue.pop();
  if (!newest) return;
  const { text, resolve } = newest;
  running += 1;
  ask(text)
    .catch(() => null)
    .then((html) => {
      running -= 1;
      if (html !== null) keep(text, html);
      resolve(html);
      next();
    });
}

/**
 * @param {string} text
 * @param {number} tries
 * @returns {Promise<string | null>}
 */
async function ask(text, tries = 3) {
  const body = JSON.stringify({ markdown: text });
  const response = await fetch("./render", { method: "POST", headers: { "content-type": "application/json" }, body });
  if (response.ok) return (await response.json()).html ?? null;
  if (response.status !== 429 || tries === 0) return null;
  const afterS = Number(response.headers.get("retry-after")) || 1;
  await new Promise((resolve) => setTimeout(resolve, Math.min(afterS, 10) * 1000));
  return ask(text, tries - 1);
}

/**
 * @param {string} text
 * @param {string} html
 */
function keep(text, html) {
  kept.set(text, html);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
}
