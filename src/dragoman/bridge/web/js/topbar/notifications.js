/**
 * Browser notifications while the page is hidden: a question waits, or a turn has ended. The user enables them
 * with a click, and the browser stores the choice.
 *
 * A service worker shows them, because phone browsers have no other way. Without one, the page
 * shows them.
 */

import { fragmentOf } from "../app/fragment.js";
import { fill, icon, iconButton } from "../page/dom.js";
import { serviceWorkerUrl } from "../page/trusted.js";
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

  /** Apply the stored choice. */
  #follow() {
    this.#worker = this.#isOn ? startWorker() : Promise.resolve(null);
    this.#draw();
  }

  async #toggle() {
    const problem = obstacle();
    if (problem !== null) this.#app.toast(problem, "info");
    else if (this.#isOn) await this.#turnOff();
    else if ((await Notification.requestPermission()) === "granted") await this.#turnOn();
    else this.#app.toast("The browser blocks notifications from this page. Allow them in its settings for this address.", "error");
    this.#draw();
  }

  async #turnOn() {
    localStorage.setItem(KEPT, "on");
    this.#worker = startWorker();
    await this.#worker;
    this.#app.toast("You get a notification when a request is waiting or a turn has ended while this page is hidden.", "info");
  }

  async #turnOff() {
    localStorage.removeItem(KEPT);
    const worker = await this.#worker;
    this.#worker = Promise.resolve(null);
    await worker?.unregister();
  }

  #draw() {
    const label = obstacle() !== null ? "Notifications: not available" : this.#isOn ? "Notifications: on" : "Notifications: off";
    this.#button.dataset.icon = this.#isOn ? "bell" : "bell_off";
    fill(this.#button, icon(this.#button.dataset.icon));
    this.#button.setAttribute("aria-pressed", String(this.#isOn));
    this.#button.setAttribute("aria-label", label);
    this.#button.title = label;
  }

  /** Compare a changed session with its last facts. A session that was not in the list counts as idle before. */
  #meet() {
    const id = this.#app.state.news?.sessionId;
    if (id !== undefined && !this.#seen.has(id)) this.#seen.set(id, { pending: 0, running: false });
  }

  /** Compare the sessions with their last facts. A newly loaded session causes no notification. */
  #look() {
    for (const facts of this.#app.state.sessions.values()) {
      const was = this.#seen.get(facts.sessionId);
      const now = { pending: facts.pending ?? 0, running: facts.state === "running" };
      this.#seen.set(facts.sessionId, now);
      if (!was || facts.parent !== undefined) continue;
      if (now.pending > was.pending) this.#notify(facts, "Your answer is needed");
      else if (was.running && !now.running) this.#notify(facts, facts.error ? "Turn failed" : "Turn finished");
    }
  }

  /**
   * @param {bridge.SessionFacts} facts
   * @param {string} words
   */
  async #notify({ sessionId, title }, words) {
    if (document.visibilityState !== "hidden" || !this.#isOn) return;
    const place = { agent: this.#app.agentName, session: sessionId };
    // One notification per session. A new one replaces the last, even from another window.
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
   * Handle a click on a notification, perhaps of an agent that this window does not show.
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

/** The reason why notifications are not possible here, or null. */
function obstacle() {
  if (!isSecureContext)
    return `Browsers allow notifications only over HTTPS or from this machine. This page was loaded over plain HTTP from ${location.hostname}.`;
  return "Notification" in globalThis ? null : "This browser does not support notifications for pages in tabs.";
}

/** The registration of our active service worker, or null if the browser has none or forbids it. */
async function startWorker() {
  if (!navigator.serviceWorker) return null;
  try {
    const registration = await navigator.serviceWorker.register(serviceWorkerUrl());
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
      else if (!worker || worker.state === "redundant") reject(new Error("it was cancelled"));
    };
    worker?.addEventListener("statechange", look);
    setTimeout(() => reject(new Error("it could not start")), START_TIMEOUT_MS);
    look();
  });
}
