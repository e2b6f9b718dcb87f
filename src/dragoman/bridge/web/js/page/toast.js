/** Short notes on screen, and announcements for screen readers. */

import { lastText } from "../session/transcript.js";
import { cleanText } from "../text/safe.js";
import { el, icon, iconButton } from "./dom.js";

const INFO_MS = 4_000;
const ERROR_MS = 12_000;
const MOST = 4;
const ICONS = { info: "check", hint: "help", error: "warning" };

export class Toasts {
  #list = el("section", { class: "toasts", "aria-label": "Notifications" });
  #polite = el("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  #alert = el("div", { class: "visually-hidden", role: "alert" });

  /** @param {HTMLElement} root */
  constructor(root) {
    root.append(this.#list, this.#polite, this.#alert);
  }

  /**
   * @param {string} words
   * @param {"info" | "hint" | "error"} kind
   */
  show(words, kind = "info") {
    const note = el(
      "div",
      { class: `toast toast-${kind}` },
      icon(ICONS[kind]),
      el("span", {}, cleanText(words)),
    );
    note.append(iconButton("close", "Dismiss", () => note.remove(), { class: "small" }));
    this.#list.append(note);
    while (this.#list.children.length > MOST) this.#list.firstChild?.remove();
    (kind === "error" ? this.#alert : this.#polite).textContent = words;
    setTimeout(() => note.remove(), kind === "error" ? ERROR_MS : INFO_MS);
  }

  /** @param {string} words */
  announce(words) {
    this.#polite.textContent = words;
  }
}

const MOST_READ_CHARS = 400;

/**
 * Announce changes to screen readers. An answer is announced when it is complete.
 *
 * @param {page.App} app
 */
export function narrate(app) {
  /** @type {page.Session | null} */
  let session = null;
  let wasRunning = false;
  app.state.addEventListener("session", () => {
    const now = app.state.session;
    if (now !== session) [session, wasRunning] = [now, Boolean(now?.running)];
    const running = Boolean(now?.running);
    // Failures are announced by the element that shows them.
    if (wasRunning && !running && now?.phase === "ready" && !now.failure)
      app.announce(`The agent answered. ${lastWords(now.transcript)}`);
    if (!wasRunning && running) app.announce("The agent is working.");
    wasRunning = running;
  });
}

/** @param {page.Transcript} transcript */
function lastWords(transcript) {
  const text = lastText(transcript, "agent");
  return text.length > MOST_READ_CHARS ? `${text.slice(0, MOST_READ_CHARS)}…` : text;
}
