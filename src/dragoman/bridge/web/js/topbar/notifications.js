/**
 * Notifications of the browser while the page is hidden: a question waits, or a turn has ended. A person asks for them
 * by a click; the choice is kept in this browser.
 *
 * They are shown through a service worker, because browsers of phones know no other way. Where there is none, the page
 * shows them itself.
 */

import { fragmentOf } from "../app/fragment.js";
import { fill, icon, iconButton } from "../page/dom.js";
import { workerAddress } from "../page/trusted.js";
import { oneLine } from "../text/safe.js";

const KEPT = "dragoman.notifications";
const START_TIMEOUT_MS = 10_000;

/** @typedef {{ pending: number, running: boolean }} Seen */

export class Notifications {
  /** @type {page.App} */
  #app;
  /** @type {Map<string, Seen>} */
  #seen = new Map();
  #button;
  /** @type {Promise<ServiceWorkerRegistration | null>} */
  #worker = Promise.resolve(null);

  /** @param {page.App} app */
  constructor(app) {
    this.#app = app;
    this.#button = iconButton("bell", "", () => this.#toggle(), { class: "notifications-button", "aria-pressed": "false" });
    app.state.addEventListener("news", () => this.#meet());
    app.state.addEventListener("sessions", () => this.#look());
    navigator.serviceWorker?.addEventListener("message", ({ data }) => this.#clicked(data));
    // Tabs of one browser share the choice, and the worker.
    addEventListener("storage", ({ key }) => (key === KEPT || key === null) && this.#follow());
    this.#follow();
  }

  get element() {
    return this.#button;
  }

  get #isOn() {
    return obstacle() === null && localStorage.getItem(KEPT) === "on" && Notification.permission === "granted";
  }

  /** Take up the choice that is kept. */
  #follow() {
    this.#worker = this.#isOn ? startWorker() : Promise.resolve(null);
    this.#draw();
  }

  async #toggle() {
    const problem = obstacle();
    if (problem !== null) this.#app.toast(problem, "info");
    else if (this.#isOn) await this.#turnOff();
    else if ((await Notification.requestPermission()) === "granted") await this.#turnOn();
    else this.#app.toast("The browser does not allow notifications of this page. Its settings for this address can.", "error");
    this.#draw();
  }

  async #turnOn() {
    localStorage.setItem(KEPT, "on");
    this.#worker = startWorker();
    await this.#worker;
    this.#app.toast("While this page is hidden, the browser tells you when a question waits or a turn has ended.", "info");
  }

  async #turnOff() {
    localStorage.removeItem(KEPT);
    const worker = await this.#worker;
    this.#worker = Promise.resolve(null);
    await worker?.unregister();
  }

  #draw() {
    const label = obstacle() !== null ? "Notifications: not possible here" : this.#isOn ? "Notifications: on" : "Notifications: off";
    this.#button.dataset.icon = this.#isOn ? "bell" : "bell_off";
    fill(this.#button, icon(this.#button.dataset.icon));
    this.#button.setAttribute("aria-pressed", String(this.#isOn));
    this.#button.setAttribute("aria-label", label);
    this.#button.title = label;
  }

  /** A session that is told of because it changed, and was not in the list so far, had nothing to tell before. */
  #meet() {
    const id = this.#app.state.news?.sessionId;
    if (id !== undefined && !this.#seen.has(id)) this.#seen.set(id, { pending: 0, running: false });
  }

  /** Compare the sessions with how they were; a session that is new in the list has no news. */
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
  async #tell({ sessionId, title }, words) {
    if (document.visibilityState !== "hidden" || !this.#isOn) return;
    const place = { agent: this.#app.agentName, session: sessionId };
    // One for each session: the next takes the place of the last, also that of another window.
    const options = { body: oneLine(title ?? ""), tag: `dragoman-${sessionId}`, icon: new URL("./static/icon.svg", document.baseURI).href, data: place };
    try {
      const worker = await this.#worker;
      if (worker) await worker.showNotification(words, options);
      else this.#showHere(words, options);
    } catch (error) {
      console.warn("a notification was not shown:", error);
      localStorage.removeItem(KEPT);
      this.#draw();
    }
  }

  /**
   * @param {string} words
   * @param {NotificationOptions} options
   */
  #showHere(words, options) {
    const shown = new Notification(words, options);
    shown.onclick = () => {
      window.focus();
      shown.close();
      this.#clicked({ open: options.data });
    };
  }

  /**
   * Somebody clicked on a notification, maybe one of an agent that this window does not show.
   *
   * @param {any} message
   */
  #clicked(message) {
    const { agent = null, session } = message?.open ?? {};
    if (typeof session !== "string") return;
    if (agent !== this.#app.agentName) location.hash = fragmentOf({ agent, session });
    else {
      this.#app.show("conversation");
      this.#app.openSession(session).catch(() => {});
    }
  }
}

/** Why there are no notifications here, in words; null if there can be some. */
function obstacle() {
  if (!isSecureContext)
    return `Browsers give notifications only to pages that came over HTTPS, or from this machine. This page came over plain HTTP from ${location.hostname}.`;
  return "Notification" in globalThis ? null : "This browser has no notifications for pages in its tabs.";
}

/** The registration of our service worker, once it is at work; null where browsers have none, or do not let us. */
async function startWorker() {
  if (!navigator.serviceWorker) return null;
  try {
    const registration = await navigator.serviceWorker.register(workerAddress());
    await activated(registration);
    return registration;
  } catch (error) {
    console.warn("the service worker for notifications was not started:", error);
    return null;
  }
}

/**
 * @param {ServiceWorkerRegistration} registration
 * @returns {Promise<void>}
 */
function activated(registration) {
  const worker = registration.active ?? registration.waiting ?? registration.installing;
  return new Promise((resolve, reject) => {
    const look = () => {
      if (worker?.state === "activated") resolve();
      else if (!worker || worker.state === "redundant") reject(new Error("it was given up"));
    };
    worker?.addEventListener("statechange", look);
    setTimeout(() => reject(new Error("it does not start")), START_TIMEOUT_MS);
    look();
  });
}
