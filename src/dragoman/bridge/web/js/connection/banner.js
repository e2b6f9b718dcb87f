/** The banner above the conversation, which explains a problem with the connection or the agent. */

import { el, fill, icon } from "../page/dom.js";
import { cleanText, oneLine } from "../text/safe.js";
import { explain, sentence } from "./failure.js";

const MOST_METHODS = 3;

/**
 * The content of the banner. `until` is the time of the next attempt.
 *
 * @typedef {{ kind: string, words: string, more?: string | null, until?: number | null, action?: HTMLElement, busy?: boolean }} Face
 */

export class Banner {
  #root;
  /** @type {page.App} */
  #app;
  /** @type {string | null} */
  #drawn = null;
  /** @type {number | undefined} */
  #timer = undefined;
  #crashedAt = 0;

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#root = root;
    this.#app = app;
    app.state.addEventListener("connection", () => this.#draw());
    app.state.addEventListener("session", () => this.#draw());
    app.state.addEventListener("auth", () => this.#draw());
    app.state.addEventListener("agent", () => {
      this.#crashedAt = Date.now();
      this.#draw();
    });
    this.#draw();
  }

  #draw() {
    const face = this.#ofConnection() ?? this.#ofAgent() ?? this.#ofLogin();
    clearInterval(this.#timer);
    if (face?.until) this.#timer = setInterval(() => this.#count(face), 500);
    const key = face && `${face.words} ${face.kind} ${face.more}`;
    if (key !== this.#drawn) {
      this.#drawn = key;
      this.#root.hidden = !face;
      this.#root.className = `banner ${face?.kind ?? ""}`;
      fill(this.#root, face && this.#content(face));
    }
    if (face) this.#count(face);
  }

  /** @param {Face} face */
  #content({ words, more, action, busy }) {
    const details =
      more &&
      el("details", { class: "stderr" }, el("summary", {}, "Agent output"), el("pre", { tabindex: "0" }, cleanText(more)));
    const line = el(
      "div",
      { class: "banner-line" },
      busy ? el("span", { class: "spinner" }) : icon("warning"),
      el("span", {}, cleanText(words), " ", el("span", { class: "banner-count" })),
      action,
    );
    return [line, details];
  }

  /** @param {Face} face */
  #count({ until }) {
    const element = this.#root.querySelector(".banner-count");
    if (!element) return;
    const seconds = until ? Math.ceil((until - Date.now()) / 1000) : 0;
    const words = seconds > 0 ? `Next attempt in ${seconds} s.` : "";
    if (element.textContent !== words) element.textContent = words;
  }

  /** @returns {Face | null} */
  #ofConnection() {
    const { connection } = this.#app;
    const { phase, reason, refused, stderr, retryAt } = connection.state;
    if (phase === "reconnecting") return { kind: "banner-warn", words: "Connecting again…", busy: true };
    if (phase !== "waiting") return null;
    const now = el("button", { type: "button", class: "text-button", onclick: () => connection.retryNow() }, "Try now");
    const kind = refused ? "banner-bad" : "banner-warn";
    const what = refused ? "The agent could not start." : "The connection is lost.";
    return { kind, words: `${what} ${sentence(reason)}`, more: stderr, until: retryAt, action: now };
  }

  /** @returns {Face | null} */
  #ofAgent() {
    const { agent, session } = this.#app.state;
    if (agent?.state === "starting" && session) return { kind: "", words: "The agent is starting…", busy: true };
    if (agent?.state !== "crashed") return null;
    const until =
      agent.retryInS === undefined || agent.retryInS === null ? null : this.#crashedAt + agent.retryInS * 1000;
    return {
      kind: "banner-bad",
      words: `The agent stopped. ${sentence(agent.reason)}`,
      more: agent.stderr,
      until,
    };
  }

  /** @returns {Face | null} */
  #ofLogin() {
    const { auth, connection } = this.#app.state;
    if (auth?.state !== "unauthenticated" || connection.phase !== "open") return null;
    const methods = this.#app.initialized?.authMethods ?? [];
    // The page can only start logins that the agent performs. Others need a terminal or a variable.
    const own = methods.filter((method) => (Reflect.get(method, "type") ?? "agent") === "agent");
    const rest = methods.filter((method) => !own.includes(method)).map(({ name }) => oneLine(name ?? ""));
    const words = own.length > 0 || rest.length === 0 ? "" : ` To sign in, use ${rest.join(", ")} on the agent's machine.`;
    const action = el("span", { class: "banner-actions" }, own.slice(0, MOST_METHODS).map((method) => this.#loginButton(method)));
    return { kind: "banner-warn", words: `The agent requires you to sign in.${words}`, action };
  }

  /** @param {{ id: string, name?: string | null }} method */
  #loginButton({ id, name }) {
    const button = el("button", { type: "button", class: "text-button" }, `Sign in: ${oneLine(name ?? id)}`);
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await this.#app.logIn(id);
        this.#app.announce("You are signed in.");
      } catch (error) {
        this.#app.toast(explain(error), "error");
      }
      button.disabled = false;
    });
    return button;
  }
}
