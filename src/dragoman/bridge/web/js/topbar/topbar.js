/** The top bar: the session's title and state, and buttons for other views. */

import { appearanceButton } from "./appearance.js";
import { el, fill, icon, iconButton } from "../page/dom.js";
import { openMenu } from "../sidebar/menu.js";
import { Notifications } from "./notifications.js";
import { Servers } from "./servers.js";
import { oneLine, visible } from "../text/safe.js";

export class Topbar {
  /** @type {page.App} */
  #app;
  /** @type {page.Session | null} */
  #session = null;
  #title = el("h1", { class: "topbar-title" });
  #where = el("span", { class: "topbar-where" });
  #state = el("span", { class: "topbar-state" });
  #find;
  #review;
  #inspector;

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   * @param {{ toggleDrawer: () => void, showHelp: () => void }} actions
   */
  constructor(root, app, { toggleDrawer, showHelp }) {
    this.#app = app;
    const menu = iconButton("menu", "Sessions", toggleDrawer, { class: "drawer-button", "aria-controls": "sidebar" });
    const right = el("div", { class: "topbar-right" }, this.#state);
    new Servers(right, app);
    this.#inspector = iconButton(
      "wire",
      "Wire inspector",
      () => app.show(app.state.view === "inspector" ? "conversation" : "inspector"),
      { "aria-pressed": "false", dataset: { icon: "wire" } },
    );
    this.#review = iconButton(
      "changes",
      "Changed files",
      () => app.show(app.state.view === "review" ? "conversation" : "review"),
      { "aria-pressed": "false" },
    );
    const find = () => {
      app.show("conversation");
      app.find();
    };
    this.#find = iconButton("search", "Find in this session", find, { dataset: { icon: "search" } });
    const folded = [this.#find, this.#inspector, new Notifications(app).element, appearanceButton()];
    right.append(this.#find, this.#review, ...folded.slice(1), iconButton("help", "Keyboard shortcuts", showHelp, { class: "keys-button" }), moreButton(folded));
    root.append(menu, el("div", { class: "topbar-names" }, this.#title, this.#where), right);
    for (const name of ["session", "connection", "view", "agent", "auth"]) app.state.addEventListener(name, () => this.#draw());
    this.#draw();
  }

  #draw() {
    const { session, view } = this.#app.state;
    this.#watch(session);
    const unnamed = session?.phase === "failed" ? "Session" : "New session";
    const title = session ? oneLine(session.title || unnamed) : "Dragoman";
    if (this.#title.textContent !== title) this.#title.textContent = title;
    this.#where.textContent = visible(session?.cwd ?? "");
    this.#where.title = this.#where.textContent;
    document.title = session ? `${session.running ? "● " : ""}${title} · Dragoman` : "Dragoman";
    // Only for owners, because wire messages contain secrets such as the keys of MCP servers.
    this.#inspector.hidden = this.#app.readOnly;
    this.#inspector.setAttribute("aria-pressed", String(view === "inspector"));
    this.#find.hidden = this.#review.hidden = !session;
    this.#review.setAttribute("aria-pressed", String(view === "review"));
    this.#drawState();
  }

  /** @param {page.Session | null} session */
  #watch(session) {
    if (session === this.#session) return;
    this.#session?.removeEventListener("questions", this.#drawState);
    this.#session = session;
    this.#session?.addEventListener("questions", this.#drawState);
  }

  #drawState = () => {
    const [dot, words] = stateOf(this.#app);
    this.#state.title = [words, ...accounts(this.#app)].join("\n");
    if (this.#state.dataset.words === words) return;
    this.#state.dataset.words = words;
    fill(
      this.#state,
      this.#app.readOnly && el("span", { class: "chip" }, icon("eye"), "read-only"),
      el("span", { class: `dot ${dot}` }),
      el("span", { class: "topbar-words" }, words),
    );
  };
}

/**
 * A menu that replaces buttons on a phone.
 *
 * @param {HTMLElement[]} buttons
 */
function moreButton(buttons) {
  for (const button of buttons) button.classList.add("topbar-folded");
  const items = () =>
    buttons
      .filter((button) => !button.hidden)
      .map((button) => ({ icon: button.dataset.icon ?? "", words: button.getAttribute("aria-label") ?? "", run: () => button.click() }));
  const more = iconButton("more", "More", () => openMenu(more, items(), "More"), { class: "topbar-more", "aria-haspopup": "menu", "aria-expanded": "false" });
  return more;
}

/**
 * The names of the accounts that the agent uses.
 *
 * @param {page.App} app
 */
function accounts({ state }) {
  const used = (state.auth?.accounts ?? []).filter(({ active }) => active !== false);
  return used.map(({ label, email, name }) => oneLine([label, email ?? name].filter(Boolean).join(", ")));
}

/** @param {page.App} app */
function stateOf(app) {
  const { connection, agent, session } = app.state;
  if (connection.phase === "connecting" || connection.phase === "reconnecting") return ["dot-busy", "Connecting"];
  if (connection.phase !== "open") return ["dot-bad", "Not connected"];
  if (agent?.state === "crashed") return ["dot-bad", "Agent crashed"];
  if (agent?.state === "starting") return ["dot-busy", "Agent starting"];
  if (session?.running) {
    const asks = session.questions.some((question) => !question.settled);
    return asks ? ["dot-warn", "Waiting for you"] : ["dot-busy", "Working"];
  }
  return ["dot-good", "Connected"];
}
