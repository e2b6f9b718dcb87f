/** The MCP servers of a new session. They are not stored, because they may contain secrets. */

import { explain } from "../connection/failure.js";
import { el, fill, find, icon, iconButton } from "../page/dom.js";
import { parseServers } from "./server_paste.js";
import { ServerForm, kindOf } from "./server_form.js";
import { field } from "./dialog.js";

export class ServerList {
  /** @type {acp.McpServer[]} */
  #servers = [];

  /** @param {page.App} app */
  constructor(app) {
    this.app = app;
    this.list = el("ul", { class: "server-list" });
    this.place = el("div", {});
    this.buttons = el("div", { class: "server-buttons" },
      el("button", { type: "button", class: "button", onclick: () => this.#edit(null) }, icon("plus"), "Add a server"),
      el("button", { type: "button", class: "button", onclick: () => this.#paste() }, "Paste JSON"));
    this.element = el("section", { class: "field", "aria-label": "MCP servers" },
      el("span", { class: "field-label" }, "MCP servers"),
      el("p", { class: "field-hint" }, "For this session only. They are not saved."),
      this.list, this.place, this.buttons);
  }

  /** The servers. Throws an Error for an unfinished form, or a server that the agent does not support. */
  value() {
    if (this.place.childElementCount > 0) throw new Error("Finish or cancel the server you are adding first.");
    const kinds = this.#kinds();
    const odd = this.#servers.find((server) => !kinds.includes(kindOf(server)));
    if (odd) throw new Error(`This agent does not support ${kindOf(odd).toUpperCase()} servers. Remove “${odd.name}”.`);
    return this.#servers;
  }

  #kinds() {
    const { http, sse } = this.app.capabilities.mcpCapabilities ?? {};
    return ["stdio", ...(http ? ["http"] : []), ...(sse ? ["sse"] : [])];
  }

  /** @param {acp.McpServer | null} server */
  #edit(server) {
    const form = new ServerForm({
      kinds: this.#kinds(), server, leave: () => this.#leave(),
      done: (made) => {
        const index = server ? this.#servers.indexOf(server) : -1;
        if (index >= 0) this.#servers[index] = made;
        else this.#put([made]);
        this.#leave();
      },
    });
    fill(this.place, form.element);
    this.buttons.hidden = true;
    form.name.focus();
  }

  #paste() {
    const text = el("textarea", { class: "input server-paste", rows: "6", spellcheck: "false", placeholder: '{"mcpServers": {"name": {"command": "npx", "args": ["…"]}}}' });
    const problem = el("p", { class: "field-error", role: "alert" });
    const take = () => {
      try {
        this.#put(parseServers(text.value));
        this.#leave();
      } catch (error) {
        problem.textContent = explain(error);
      }
    };
    fill(this.place, el("div", { class: "server-form" },
      field("MCP servers as JSON", text, "The mcpServers block from your editor's settings."), problem,
      el("div", { class: "server-actions" },
        el("button", { type: "button", class: "button", onclick: () => this.#leave() }, "Cancel"),
        el("button", { type: "button", class: "button", onclick: take }, "Add"))));
    this.buttons.hidden = true;
    text.focus();
  }

  /**
   * Add servers. A server of the same name is replaced.
   *
   * @param {acp.McpServer[]} made
   */
  #put(made) {
    const names = new Set(made.map(({ name }) => name));
    this.#servers = [...this.#servers.filter(({ name }) => !names.has(name)), ...made];
  }

  #leave() {
    fill(this.place);
    this.buttons.hidden = false;
    this.#draw();
    find(this.buttons, "button")?.focus();
  }

  #draw() {
    const kinds = this.#kinds();
    fill(this.list, this.#servers.map((server) => {
      const isSupported = kinds.includes(kindOf(server));
      return el("li", { class: "server-item" }, icon("plug"),
        el("span", { class: "server-words" }, el("strong", {}, server.name),
          el("span", { class: "server-what" }, what(server)),
          !isSupported && el("span", { class: "field-error" }, `This agent does not support ${kindOf(server).toUpperCase()} servers.`)),
        iconButton("edit", `Change ${server.name}`, () => this.#edit(server), { disabled: !isSupported }),
        iconButton("close", `Remove ${server.name}`, () => this.#remove(server)));
    }));
  }

  /** @param {acp.McpServer} server */
  #remove(server) {
    this.#servers = this.#servers.filter((one) => one !== server);
    this.#draw();
    find(this.buttons, "button")?.focus();
  }
}

/** @param {acp.McpServer} server */
function what(server) {
  const secrets = "env" in server ? server.env.length : "headers" in server ? server.headers.length : 0;
  const first = "command" in server ? [server.command, ...server.args].join(" ") : "url" in server ? server.url : "";
  return secrets ? `${first} · ${secrets} hidden ${secrets === 1 ? "value" : "values"}` : first;
}
