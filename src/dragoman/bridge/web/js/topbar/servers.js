/** The MCP servers of the open session: how each of them is, and why one is not. */

import { el, fill, icon } from "../page/dom.js";
import { oneLine, visible } from "../text/safe.js";

const FACES = {
  connecting: ["dot-busy", "connecting"],
  ready: ["dot-good", "ready"],
  failed: ["dot-bad", "failed"],
  stopped: ["", "stopped"],
};

export class Servers {
  /** @type {page.App} */
  #app;
  /** @type {bridge.ServerFacts[] | null} */
  #drawn = null;
  #button = el("button", { type: "button", class: "icon-button servers-button", "aria-label": "MCP servers" });
  #panel = el("div", { class: "menu-panel servers" });

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#app = app;
    this.menu = new Menu(this.#button, this.#panel);
    root.append(this.menu.element);
    app.state.addEventListener("session", () => this.#draw());
    this.#draw();
  }

  #draw() {
    const servers = this.#app.state.session?.transcript.servers ?? [];
    if (servers === this.#drawn) return;
    this.#drawn = servers;
    this.menu.element.hidden = servers.length === 0;
    const bad = servers.filter((one) => isBad(one)).length;
    const label = `MCP servers: ${servers.length}${bad ? `, ${bad} not working` : ""}`;
    this.#button.setAttribute("aria-label", label);
    this.#button.title = label;
    fill(this.#button, icon("plug"), el("span", { class: bad ? "badge badge-bad" : "badge" }, servers.length));
    fill(this.#panel, el("h2", { class: "menu-title" }, "MCP servers"), el("ul", {}, servers.map(row)));
  }
}

/** @param {bridge.ServerFacts} server */
function isBad({ state }) {
  return state === "failed";
}

/** @param {bridge.ServerFacts} server */
function row({ name, transport, state, tools, reason }) {
  const [dot, words] = FACES[state] ?? ["", oneLine(state)];
  const facts = [oneLine(transport ?? ""), tools ? `${tools} ${tools === 1 ? "tool" : "tools"}` : null].filter(Boolean).join(" · ");
  return el(
    "li",
    { class: "server" },
    el("span", { class: `dot ${dot}` }),
    el(
      "div",
      {},
      el("div", { class: "server-name" }, oneLine(name), el("span", { class: "server-state" }, words)),
      el("div", { class: "server-facts" }, facts),
      reason && el("p", { class: "server-reason" }, visible(reason, { lines: true })),
    ),
  );
}

/** A panel that a button opens; a click elsewhere or Esc closes it. */
class Menu {
  #button;
  #panel;

  /**
   * @param {HTMLElement} button
   * @param {HTMLElement} panel
   */
  constructor(button, panel) {
    this.#button = button;
    this.#panel = panel;
    panel.hidden = true;
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => this.toggle());
    this.element = el("div", { class: "menu" }, button, panel);
    document.addEventListener(
      "pointerdown",
      (event) => event.target instanceof Node && this.isOpen && !this.element.contains(event.target) && this.close(),
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.isOpen) return;
      event.preventDefault();
      this.close();
      button.focus();
    });
  }

  get isOpen() {
    return !this.#panel.hidden;
  }

  toggle() {
    if (this.isOpen) this.close();
    else this.open();
  }

  open() {
    this.#panel.hidden = false;
    this.#button.setAttribute("aria-expanded", "true");
  }

  close() {
    this.#panel.hidden = true;
    this.#button.setAttribute("aria-expanded", "false");
  }
}
