/**
 * The MCP servers of the open session: the state, error and tools of each, and buttons to restart one or to
 * log in.
 *
 * The states arrive with the session (`dragoman/mcp` in `_meta`). The rest is requested when the panel opens, from
 * agents that offer it in `agentCapabilities._meta["dragoman/mcp"]`.
 */

import { explain } from "../connection/failure.js";
import { el, fill, find, icon } from "../page/dom.js";
import { oneLine, visible } from "../text/safe.js";
import { Menu } from "./menu.js";

/** @type {Record<string, [string, string]>} */
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
  /**
   * The last answer of the agent, and its session.
   *
   * @type {{ session: page.Session, servers: bridge.ListedServer[] } | null}
   */
  #listed = null;
  #button = el("button", { type: "button", class: "icon-button servers-button", "aria-label": "MCP servers" });
  #rows = el("ul", {});
  #problem = el("p", { class: "field-error", role: "alert" });
  #panel = el("section", { class: "menu-panel servers", "aria-label": "MCP servers" }, el("h2", { class: "menu-title" }, "MCP servers"), this.#rows, this.#problem);

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#app = app;
    this.menu = new Menu(this.#button, this.#panel);
    this.menu.onopen = () => this.#list();
    root.append(this.menu.element);
    app.state.addEventListener("session", () => this.#draw());
    app.state.addEventListener("connection", () => this.#draw());
    this.#draw();
  }

  /** @returns {Partial<bridge.ServerMethods>} the requests that the agent supports, or none for a reader */
  get #methods() {
    return (!this.#app.readOnly && this.#app.capabilities._meta?.["dragoman/mcp"]) || {};
  }

  #draw() {
    const { session } = this.#app.state;
    const servers = session?.transcript.servers ?? [];
    if (servers === this.#drawn) return;
    this.#drawn = servers;
    this.menu.element.hidden = servers.length === 0;
    if (servers.length === 0) this.menu.close();
    const bad = servers.filter(({ state }) => state === "failed").length;
    const label = `MCP servers: ${servers.length}${bad ? `, ${bad} not working` : ""}`;
    this.#button.setAttribute("aria-label", label);
    this.#button.title = label;
    fill(this.#button, icon("plug"), el("span", { class: bad ? "badge badge-bad" : "badge" }, servers.length));
    this.#drawRows();
    if (this.menu.isOpen) this.#list();
  }

  /** Request the details. Until they arrive, the panel shows the states. */
  async #list() {
    const { session } = this.#app.state;
    const method = this.#methods.list;
    this.#problem.textContent = "";
    if (!session || !method) return this.#drawRows();
    try {
      const { servers } = await this.#app.connection.request(method, { sessionId: session.id });
      this.#listed = { session, servers };
    } catch (error) {
      this.#problem.textContent = explain(error);
    }
    this.#drawRows();
  }

  #drawRows() {
    const open = new Set([...this.#rows.querySelectorAll("details[open]")].map((one) => one.getAttribute("data-name")));
    const focused = this.#rows.contains(document.activeElement) ? document.activeElement?.getAttribute("data-action") : null;
    const isHere = this.#listed !== null && this.#listed.session === this.#app.state.session;
    const known = new Map((isHere && this.#listed ? this.#listed.servers : []).map((one) => [one.name, one]));
    const rows = (this.#drawn ?? []).map((facts) => {
      const listed = known.get(facts.name);
      return el("li", { class: "server" }, ...row(facts, listed ?? null), listed && tools(listed, open.has(facts.name)), this.#actions(facts, listed ?? null));
    });
    const words = this.#app.readOnly || this.#methods.list ? null : el("li", { class: "server-facts" }, "This agent gives no details of its servers and cannot restart them.");
    fill(this.#rows, rows, words);
    if (focused) find(this.#rows, `[data-action="${CSS.escape(focused)}"]`)?.focus();
  }

  /**
   * @param {bridge.ServerFacts} facts
   * @param {bridge.ListedServer | null} listed
   */
  #actions(facts, listed) {
    const method = this.#methods.restart;
    if (!method || listed?.canRestart === false) return null;
    const name = oneLine(facts.name);
    const wantsLogin = facts.state === "failed" && listed?.wantsLogin === true;
    const words = wantsLogin ? "Log in" : "Restart";
    const shape = { type: "button", class: "button", "aria-label": wantsLogin ? `Log in at ${name}` : `Restart ${name}`, "data-action": facts.name };
    const button = el("button", { ...shape, onclick: () => this.#restart(method, facts.name) }, icon(wantsLogin ? "external" : "refresh"), words);
    return el("div", { class: "server-actions" }, button);
  }

  /**
   * Restart a server. If it needs a login, its question appears in the conversation.
   *
   * @param {bridge.ServerMethods["restart"]} method
   * @param {string} name
   */
  async #restart(method, name) {
    const { session } = this.#app.state;
    this.#problem.textContent = "";
    if (!session) return;
    try {
      await this.#app.connection.request(method, { sessionId: session.id, name });
    } catch (error) {
      this.#problem.textContent = explain(error);
    }
  }
}

/**
 * @param {bridge.ServerFacts} facts
 * @param {bridge.ListedServer | null} listed
 */
function row({ name, transport, state, tools: count, reason }, listed) {
  const [dot, words] = FACES[state] ?? ["", oneLine(state)];
  const facts = [oneLine(transport ?? ""), listed && originOf(listed), !listed && count ? toolWords(count) : null].filter(Boolean).join(" · ");
  return [
    el("span", { class: `dot ${dot}` }),
    el(
      "div",
      {},
      el("div", { class: "server-name" }, oneLine(name), el("span", { class: "server-state" }, words)),
      el("div", { class: "server-facts" }, facts),
      listed?.what && el("div", { class: "server-what" }, visible(listed.what)),
      reason && el("p", { class: "server-reason" }, visible(reason, { lines: true })),
    ),
  ];
}

/** @param {bridge.ListedServer} listed */
function originOf({ origin }) {
  return origin === "client" ? "for this session" : oneLine(`from ${origin}`);
}

/** @param {number} count */
function toolWords(count) {
  return count === 1 ? "1 tool" : `${count} tools`;
}

/**
 * @param {bridge.ListedServer} listed
 * @param {boolean} isOpen
 */
function tools({ name, tools: listed }, isOpen) {
  if (listed.length === 0) return null;
  const items = listed.map(({ name: tool, description, readsOnly }) =>
    el("li", {}, el("code", {}, oneLine(tool)), readsOnly && el("span", { class: "server-state" }, " read-only, according to the server"), description && el("p", {}, visible(description))),
  );
  return el("details", { class: "server-tools", "data-name": name, open: isOpen }, el("summary", {}, toolWords(listed.length)), el("ul", {}, items));
}
