/** One message of the user or the agent, or a thought. */

import { BlocksView } from "./blocks_view.js";
import { el, fill, icon } from "../page/dom.js";
import { money, short } from "../composer/usage.js";
import { textOf } from "../session/blocks.js";
import { MarkdownText, copyButton } from "../text/markdown.js";
import { GrowingText } from "../text/growing_text.js";

// Made once, because making one takes longer than drawing a message.
const TIME = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const SECONDS = /** @type {const} */ ({ hour: "numeric", minute: "numeric", second: "numeric" });
const DATE = new Intl.DateTimeFormat([], { year: "numeric", month: "numeric", day: "numeric", ...SECONDS });
const NAMES = { user: "You", agent: "Agent", thought: "Thought" };

export class MessageView {
  /** @type {page.MessageItem} */
  #item;
  #blocks;
  #body;
  #turn = el("span", { class: "message-turn" });
  #actions;
  #seen = -1;
  /** @type {boolean | null} */
  #live = null;

  /**
   * @param {page.MessageItem} item
   * @param {page.MessageActions | null} actions the actions on a message of the user
   */
  constructor(item, actions) {
    this.#item = item;
    this.#actions = actions;
    this.#blocks = new BlocksView("message-body", (element) =>
      item.role === "user" ? new PlainText(element) : new MarkdownText(element),
    );
    this.#body = this.#blocks.element;
    this.element = item.role === "thought" ? this.#thought() : this.#article();
  }

  /** @param {boolean} live */
  update(live) {
    if (this.#seen === this.#item.version && this.#live === live) return;
    this.#seen = this.#item.version;
    this.#live = live;
    this.#blocks.update(this.#item.blocks, 0, live);
    this.element.classList.toggle("live", live);
    fill(this.#turn, this.#item.turn && turnWords(this.#item.turn));
    if (this.#item.void) this.#withdraw();
  }

  /** Show the text of a thought. */
  open() {
    if (this.element instanceof HTMLDetailsElement) this.element.open = true;
  }

  #article() {
    const { role } = this.#item;
    const label = el("h2", { class: "visually-hidden" }, NAMES[role]);
    const foot = el(
      "div",
      { class: "message-foot" },
      role === "user" && this.#time(),
      role === "user" && this.#turn,
      copyButton(() => this.#text()),
      role === "user" && this.#again(),
    );
    return el("article", { class: `item message message-${role}` }, label, this.#body, foot);
  }

  #again() {
    if (!this.#actions) return null;
    const { edit, retry } = this.#actions;
    return [footButton("pencil", "Edit", edit), footButton("refresh", "Retry", retry)];
  }

  #withdraw() {
    if (this.element.classList.contains("void")) return;
    this.element.classList.add("void");
    this.#body.before(el("p", { class: "void-words" }, "The agent was interrupted here and started again. This part was discarded."));
  }

  #thought() {
    const summary = el("summary", {}, icon("think"), el("span", { class: "thought-name" }, "Thought"));
    return el("details", { class: "item message message-thought" }, summary, this.#body);
  }

  #time() {
    if (!this.#item.time) return null;
    const time = new Date(this.#item.time);
    return el("time", { datetime: time.toISOString(), title: DATE.format(time) }, TIME.format(time));
  }

  #text() {
    return this.#item.blocks.map(textOf).join("");
  }
}

/**
 * @param {string} drawing
 * @param {string} label
 * @param {() => void} onclick
 */
function footButton(drawing, label, onclick) {
  return el("button", { type: "button", class: "copy-button", "aria-label": label, title: label, onclick }, icon(drawing));
}

/**
 * The duration, tokens and cost of a turn, as text.
 *
 * @param {NonNullable<page.MessageItem["turn"]>} turn
 */
function turnWords({ ms, tokens, cost }) {
  const parts = [ms !== null && duration(ms), tokens !== null && `${short(tokens)} tokens`, cost && money(cost)];
  return parts.filter(Boolean).join(" · ");
}

/** @param {number} ms */
export function duration(ms) {
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The user's text, shown unchanged. */
class PlainText {
  #grown;
  #shown = 0;

  /** @param {HTMLElement} element */
  constructor(element) {
    this.#grown = new GrowingText(element);
  }

  /** @param {string} text */
  update(text) {
    if (text.length > this.#shown) this.#grown.append(text.slice(this.#shown));
    this.#shown = text.length;
  }
}
