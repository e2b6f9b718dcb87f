/** The used part of the model's context window, and the cost. */

import { el, fill } from "../page/dom.js";
import { oneLine } from "../text/safe.js";

const HIGH = 0.8;

export class Usage {
  #root;
  /** @type {page.App} */
  #app;
  /** @type {acp.UsageUpdate | null} */
  #drawn = null;

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#root = root;
    this.#app = app;
    app.state.addEventListener("session", () => this.#draw());
    this.#draw();
  }

  #draw() {
    const usage = this.#app.state.session?.transcript.usage ?? null;
    if (usage === this.#drawn) return;
    this.#drawn = usage;
    this.#root.hidden = usage === null;
    if (usage) fill(this.#root, bar(usage), el("span", {}, words(usage)));
  }
}

/** @param {acp.UsageUpdate} usage */
function bar({ used, size }) {
  if (!size) return null;
  const label = `${used.toLocaleString()} of ${size.toLocaleString()} tokens used`;
  const isHigh = used / size > HIGH;
  return el("progress", {
    class: isHigh ? "usage-bar usage-high" : "usage-bar",
    max: size,
    value: Math.min(used, size),
    "aria-label": label,
    title: label,
  });
}

/** @param {acp.UsageUpdate} usage */
function words({ used, size, cost }) {
  const share = size ? `${short(used)} of ${short(size)} tokens` : `${short(used)} tokens`;
  return cost ? `${share} · ${money(cost)}` : share;
}

const COMPACT = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** @param {number} count */
export function short(count) {
  return COMPACT.format(count ?? 0);
}

/** @param {acp.Cost} cost */
export function money({ amount, currency }) {
  try {
    return new Intl.NumberFormat(undefined, { style: "currency", currency, maximumFractionDigits: 4 }).format(amount);
  } catch {
    return `${amount} ${oneLine(currency)}`;
  }
}
