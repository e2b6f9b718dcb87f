/** The form for one MCP server. Values of variables and headers are hidden until the user shows them. */

import { closestTo, el, icon, iconButton } from "../page/dom.js";
import { field } from "./dialog.js";

/** @type {Record<string, string>} */
const KINDS = { stdio: "Program on the agent's machine", http: "URL (HTTP)", sse: "URL (SSE)" };

export class ServerForm {
  /**
   * `kinds`: the transports (stdio, http, sse) that the agent supports. `done(server)` and `leave()` close the form.
   *
   * @param {{ kinds: string[], server: any, done: (server: acp.McpServer) => void, leave: () => void }} given
   */
  constructor({ kinds, server, done, leave }) {
    this.done = done;
    this.kind = el("select", { class: "input", onchange: () => this.#showKind() },
      kinds.map((kind) => el("option", { value: kind }, KINDS[kind])));
    this.kind.value = server ? kindOf(server) : kinds[0];
    this.name = input(server?.name, "github");
    this.command = input(server?.command, "npx");
    this.args = el("textarea", { class: "input server-args", rows: "3", spellcheck: "false", placeholder: "-y\n@example/server" });
    this.args.value = (server?.args ?? []).join("\n");
    this.url = input(server?.url, "https://example.org/mcp");
    this.env = new Pairs("Variable", server?.env);
    this.headers = new Pairs("Header", server?.headers);
    this.problem = el("p", { class: "field-error", role: "alert" });
    this.program = el("div", { class: "server-kind" }, field("Command", this.command),
      field("Arguments", this.args, "One per line."), this.env.element);
    this.remote = el("div", { class: "server-kind" }, field("Address", this.url), this.headers.element);
    this.element = el("fieldset", { class: "server-form" },
      el("legend", { class: "visually-hidden" }, "MCP server"),
      field("Name", this.name), field("Type", this.kind), this.program, this.remote, this.problem,
      el("div", { class: "server-actions" },
        el("button", { type: "button", class: "button", onclick: leave }, "Cancel"),
        el("button", { type: "button", class: "button", onclick: () => this.#finish() }, server ? "Save" : "Add")));
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.#showKind();
  }

  #showKind() {
    this.program.hidden = this.kind.value !== "stdio";
    this.remote.hidden = this.kind.value === "stdio";
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== "Enter" || !closestTo(event, "input")) return;
    event.preventDefault();
    this.#finish();
  }

  #finish() {
    const problem = this.#fault();
    this.problem.textContent = problem ?? "";
    if (!problem) this.done(this.#server());
  }

  #fault() {
    if (!this.name.value.trim()) return "The server needs a name.";
    if (this.kind.value === "stdio") return this.command.value.trim() ? null : "The server needs a command.";
    try {
      const { protocol } = new URL(this.url.value.trim());
      return ["http:", "https:"].includes(protocol) ? null : "The address must begin with http:// or https://.";
    } catch {
      return "The address must be a full URL such as https://example.org/mcp.";
    }
  }

  /** @returns {acp.McpServer} */
  #server() {
    const name = this.name.value.trim();
    if (this.kind.value !== "stdio") {
      const type = this.kind.value === "sse" ? "sse" : "http";
      return { type, name, url: this.url.value.trim(), headers: this.headers.value() };
    }
    const args = this.args.value.split("\n").filter((line) => line !== "");
    return { name, command: this.command.value.trim(), args, env: this.env.value() };
  }
}

/** Pairs of names and hidden values. */
class Pairs {
  /** @type {Array<{ name: HTMLInputElement, value: HTMLInputElement, element: HTMLElement }>} */
  #rows = [];

  /**
   * @param {string} noun
   * @param {Array<{ name: string, value: string }> | undefined} given
   */
  constructor(noun, given = []) {
    this.noun = noun;
    this.list = el("div", { class: "pairs" });
    this.show = iconButton("eye", "Show the values", () => this.#toggle(), { "aria-pressed": "false" });
    const add = el("button", { type: "button", class: "button pair-add", onclick: () => this.#add().focus() }, icon("plus"), `Add a ${noun.toLowerCase()}`);
    this.element = el("div", { class: "field" },
      el("div", { class: "pairs-head" }, el("span", { class: "field-label" }, `${noun}s`), this.show), this.list, add);
    for (const pair of given ?? []) this.#add(pair);
    this.#showOrHide();
  }

  value() {
    return this.#rows.map(({ name, value }) => ({ name: name.value.trim(), value: value.value })).filter(({ name }) => name);
  }

  #add(pair = { name: "", value: "" }) {
    const name = input(pair.name, this.noun === "Header" ? "Authorization" : "API_KEY");
    const value = input(pair.value, "");
    name.setAttribute("aria-label", `${this.noun} name`);
    value.setAttribute("aria-label", `${this.noun} value`);
    value.autocomplete = "off";
    const remove = iconButton("close", `Remove the ${this.noun.toLowerCase()}`, () => this.#remove(row));
    const row = { name, value, element: el("div", { class: "pair" }, name, value, remove) };
    this.#rows.push(row);
    this.list.append(row.element);
    this.#showOrHide();
    return name;
  }

  /** @param {{ element: HTMLElement }} row */
  #remove(row) {
    row.element.remove();
    this.#rows = this.#rows.filter((one) => one !== row);
    this.#showOrHide();
  }

  #toggle() {
    this.show.setAttribute("aria-pressed", String(this.show.getAttribute("aria-pressed") !== "true"));
    this.#showOrHide();
  }

  #showOrHide() {
    const shown = this.show.getAttribute("aria-pressed") === "true";
    this.show.hidden = this.#rows.length === 0;
    for (const { value } of this.#rows) value.type = shown ? "text" : "password";
  }
}

/** @param {acp.McpServer} server */
export function kindOf(server) {
  return "type" in server ? server.type : "stdio";
}

/**
 * @param {string | undefined} value
 * @param {string} placeholder
 */
function input(value, placeholder) {
  const made = el("input", { class: "input", placeholder, spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  made.value = value ?? "";
  return made;
}
