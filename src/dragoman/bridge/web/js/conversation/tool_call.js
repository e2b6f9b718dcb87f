/** One tool call: a line with its title and status, which unfolds to its content and raw data. */

import { relativePath } from "./content.js";
import { el, fill, icon } from "../page/dom.js";
import { whenNear } from "../page/scheduling.js";
import { oneLine, visible } from "../text/safe.js";
import { ToolContent } from "./tool_content.js";

/** @type {Record<string, string>} */
const KINDS = {
  read: "read",
  edit: "edit",
  delete: "trash",
  move: "move",
  search: "search",
  execute: "execute",
  think: "think",
  fetch: "fetch",
  switch_mode: "mode",
  other: "other",
};
/** @type {Record<string, string>} */
const STATES = { pending: "Waiting", in_progress: "Running", completed: "Done", failed: "Failed" };
const MOST_RAW_CHARS = 100_000;

let nextId = 1;

export class ToolCallView {
  /** @type {page.ToolItem} */
  #item;
  #cwd;
  #seen = -1;
  /** @type {boolean | null} */
  #chosen = null;
  #near = false;
  /** @type {ToolContent | null} */
  #content = null;
  #state = el("span", { class: "tool-state" });
  #kind = el("span", { class: "tool-kind" });
  #title = el("span", { class: "tool-title" });
  #name = el("code", { class: "tool-name" });
  #note = el("span", { class: "tool-note" });
  #places = el("div", { class: "tool-places" });
  #body = el("div", { class: "tool-body", hidden: true });
  #raw = el("details", { class: "tool-raw" }, el("summary", {}, "Raw data"));
  #header;

  /**
   * @param {page.ToolItem} item
   * @param {string} cwd the session's directory
   */
  constructor(item, cwd) {
    this.#item = item;
    this.#cwd = cwd;
    this.#body.id = `tool-body-${nextId++}`;
    const shape = { type: "button", class: "tool-header", "aria-expanded": "false", "aria-controls": this.#body.id };
    const arrow = icon("chevron", "tool-arrow");
    this.#header = el(
      "button",
      { ...shape, onclick: () => this.#toggle() },
      this.#state,
      this.#kind,
      this.#title,
      this.#name,
      this.#note,
      arrow,
    );
    this.#raw.addEventListener("toggle", () => this.#drawRaw());
    this.element = el("article", { class: "item tool" }, this.#header, this.#body);
    whenNear(this.element, () => {
      this.#near = true;
      this.#drawBody();
    });
  }

  update() {
    if (this.#seen === this.#item.version) return;
    this.#seen = this.#item.version;
    const { call } = this.#item;
    const status = call.status && STATES[call.status] ? call.status : "pending";
    this.element.dataset.status = status;
    this.element.dataset.kind = call.kind ?? "other";
    if (this.#state.dataset.status !== status) this.#drawState(status);
    if (this.#kind.dataset.kind !== call.kind) this.#drawKind(call.kind ?? "other");
    const title = oneLine(call.title || "Tool call");
    if (this.#title.textContent !== title) this.#title.textContent = title;
    // The tool's name is only useful if the title does not contain it.
    const name = oneLine(call.name ?? "");
    this.#name.textContent = title.includes(name) ? "" : name;
    this.#note.textContent = noteOf(this.#item);
    this.#drawBody();
  }

  /** @param {string} status */
  #drawState(status) {
    this.#state.dataset.status = status;
    /** @type {Record<string, Element>} */
    const sign = {
      pending: icon("clock"),
      in_progress: el("span", { class: "spinner" }),
      completed: icon("check"),
      failed: icon("cross"),
    };
    fill(this.#state, sign[status], el("span", { class: "visually-hidden" }, `${STATES[status]}: `));
  }

  /** @param {string} kind */
  #drawKind(kind) {
    this.#kind.dataset.kind = kind;
    this.#kind.title = oneLine(kind);
    fill(this.#kind, icon(KINDS[kind] ?? "other"), el("span", { class: "visually-hidden" }, `${oneLine(kind)}, `));
  }

  #toggle() {
    this.#chosen = Boolean(this.#body.hidden);
    this.element.dataset.chosen = "";
    this.#near = true;
    this.#drawBody();
  }

  /** Show the body. */
  open() {
    if (this.#isOpen()) return;
    this.#toggle();
  }

  #isOpen() {
    if (this.#chosen !== null) return this.#chosen;
    const { call, terminals } = this.#item;
    const shows = (call.content ?? []).length > 0 || terminals.size > 0;
    const hasChange = (call.content ?? []).some((part) => part.type === "diff" || isPicture(part));
    // A call that waits for permission is shown on the question's card.
    if (call.status === "pending") return false;
    return shows && (call.kind === "execute" || hasChange || call.status === "failed");
  }

  #drawBody() {
    const open = this.#isOpen();
    this.#header.setAttribute("aria-expanded", String(open));
    this.#body.hidden = !open;
    if (!open || !this.#near) return;
    const { call, terminals } = this.#item;
    if (this.#content === null) {
      this.#content = new ToolContent(this.#cwd);
      this.#body.append(this.#places, this.#content.element, this.#raw);
    }
    this.#content.update(call, terminals);
    this.#drawPlaces(call.locations ?? []);
    this.#raw.hidden = call.rawInput === undefined && call.rawOutput === undefined;
    if (this.#raw.open) this.#drawRaw();
  }

  /** @param {acp.ToolCallLocation[]} places */
  #drawPlaces(places) {
    this.#places.hidden = places.length === 0;
    fill(
      this.#places,
      places.slice(0, 50).map(({ path, line }) => {
        const words = relativePath(path, this.#cwd) + (line ? `:${line}` : "");
        return el("span", { class: "chip", title: visible(path) }, visible(words));
      }),
    );
  }

  #drawRaw() {
    if (!this.#raw.open) return;
    const { rawInput, rawOutput } = this.#item.call;
    fill(this.#raw, this.#raw.querySelector("summary"), rawPart("Input", rawInput), rawPart("Output", rawOutput));
  }
}

/**
 * @param {string} name
 * @param {any} value
 */
function rawPart(name, value) {
  if (value === undefined) return null;
  const text = JSON.stringify(value, null, 2) ?? "";
  const cut =
    text.length > MOST_RAW_CHARS
      ? `${text.slice(0, MOST_RAW_CHARS)}\n… ${text.length - MOST_RAW_CHARS} more characters`
      : text;
  return el("div", {}, el("div", { class: "raw-name" }, name), el("pre", { class: "raw", tabindex: "0" }, visible(cut, { lines: true })));
}

/** @param {acp.ToolCallContent} part */
function isPicture(part) {
  return part.type === "content" && part.content?.type === "image";
}

/** @param {page.ToolItem} item */
function noteOf({ call, exit }) {
  const code = exit?.exit_code ?? call.rawOutput?.exitCode;
  const signal = exit?.signal ?? call.rawOutput?.signal;
  if (call.rawOutput?.timedOut === true) return "timed out";
  if (typeof signal === "string" && signal) return oneLine(signal);
  return typeof code === "number" && code !== 0 ? `exit ${code}` : "";
}
