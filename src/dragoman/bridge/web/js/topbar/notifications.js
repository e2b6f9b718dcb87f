/**
 * Notifications of the browser while the page is hidden: a question waits, or a turn has ended. A person asks for them
 * by a click; the choice is kept in this browser.
 */

import { fill, icon, iconButton } from "../page/dom.js";
import { oneLine } from "../text/safe.js";

const KEPT = "dragoman.notifications";

/** @typedef {{ pending: number, running: boolean }} Seen */

export class Notifications {
  /** @type {page.App} */
  #app;
  /** @type {Map<string, Seen>} */
  #seen = new Map();
  #button;

  /** @param {page.App} app */
  constructor(app) {
    this.#app = app;
    this.#button = iconButton("bell", "", () => this.#toggle(), { class: "notifications-button", "aria-pressed": "false" });
    // Browsers offer them to pages that were loaded safely: from this machine, or over HTTPS.
    this.#button.hidden = !("Notification" in globalThis) || !isSecureContext;
    app.state.addEventListener("sessions", () => this.#look());
    this.#draw();
  }

  get element() {
    return this.#button;
  }

  get #isOn() {
    return localStorage.getItem(KEPT) === "on" && Notification.permission === "granted";
  }

  async #toggle() {
    if (this.#isOn) localStorage.removeItem(KEPT);
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(KEPT, "on");
    else this.#app.toast("The browser does not allow notifications of this page. Its settings for this address can.", "error");
    this.#draw();
    if (this.#isOn) this.#app.toast("While this page is hidden, the browser tells you when a question waits or a turn has ended.", "info");
  }

  #draw() {
    if (this.#button.hidden) return;
    const label = this.#isOn ? "Notifications: on" : "Notifications: off";
    fill(this.#button, icon(this.#isOn ? "bell" : "bell_off"));
    this.#button.setAttribute("aria-pressed", String(this.#isOn));
    this.#button.setAttribute("aria-label", label);
    this.#button.title = label;
  }

  /** Compare the sessions with how they were; a session that is new here has no news. */
  #look() {
    for (const facts of this.#app.state.sessions.values()) {
      const was = this.#seen.get(facts.sessionId);
      const now = { pending: facts.pending ?? 0, running: facts.state === "running" };
      this.#seen.set(facts.sessionId, now);
      if (!was || facts.parent !== undefined) continue;
      if (now.pending > was.pending) this.#tell(facts, "A question waits for you");
      else if (was.running && !now.running) this.#tell(facts, facts.error ? "The turn failed" : "The turn has ended");
    }
  }

  /**
   * @param {bridge.SessionFacts} facts
   * @param {string} words
   */
  #tell({ sessionId, title }, words) {
    if (document.visibilityState !== "hidden" || this.#button.hidden || !this.#isOn) return;
    try {
      // One for each session: the next takes the place of the last, also that of another window.
      const shown = new Notification(words, { body: oneLine(title ?? ""), tag: `dragoman-${sessionId}`, icon: "./static/icon.svg" });
      shown.onclick = () => {
        window.focus();
        shown.close();
        this.#app.openSession(sessionId).catch(() => {});
      };
    } catch {
      // Some browsers of phones have notifications for installed pages only, and say so by an error here.
      localStorage.removeItem(KEPT);
      this.#draw();
    }
  }
}
