/** One message: the person's, the agent's, or what the agent thought. */

import { contentElement } from "./content.js";
import { el, icon } from "../page/dom.js";
import { textOf } from "../session/transcript.js";
import { MarkdownText, copyButton } from "../text/markdown.js";
import { GrowingText } from "../text/growing_text.js";

const NAMES = { user: "You", agent: "Agent", thought: "Thought" };

export class MessageView {
  /** @type {page.MessageItem} */
  #item;
  #body = el("div", { class: "message-body" });
  /** @type {Array<{ update?: (text: string, live: boolean) => void }>} */
  #parts = [];
  #seen = -1;
  /** @type {boolean | null} */
  #live = null;

  /** @param {page.MessageItem} item */
  constructor(item) {
    this.#item = item;
    this.element = item.role === "thought" ? this.#thought() : this.#article();
  }

  /** @param {boolean} live */
  update(live) {
    if (this.#seen === this.#item.version && this.#live === live) return;
    this.#seen = this.#item.version;
    this.#live = live;
    this.#item.blocks.forEach((block, n) => {
      this.#parts[n] ??= this.#add(block);
      this.#parts[n].update?.(textOf(block), live && n === this.#item.blocks.length - 1);
    });
    this.element.classList.toggle("live", live);
    if (this.#item.void) this.#withdraw();
  }

  #article() {
    const { role } = this.#item;
    const label = el("h2", { class: "visually-hidden" }, NAMES[role]);
    const foot = el(
      "div",
      { class: "message-foot" },
      role === "user" && this.#time(),
      copyButton(() => this.#text()),
    );
    return el("article", { class: `item message message-${role}` }, label, this.#body, foot);
  }

  #withdraw() {
    if (this.element.classList.contains("void")) return;
    this.element.classList.add("void");
    this.#body.before(el("p", { class: "void-words" }, "Void: the agent broke off here, and began anew."));
  }

  #thought() {
    const summary = el("summary", {}, icon("think"), el("span", { class: "thought-name" }, "Thought"));
    return el("details", { class: "item message message-thought" }, summary, this.#body);
  }

  #time() {
    if (!this.#item.time) return null;
    const time = new Date(this.#item.time);
    const words = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    return el("time", { datetime: time.toISOString(), title: time.toLocaleString() }, words);
  }

  /** @param {page.Block} block */
  #add(block) {
    if (block.type !== "text") {
      this.#body.append(contentElement(block));
      return {};
    }
    const element = el("div", { class: "text" });
    this.#body.append(element);
    return this.#item.role === "user" ? new PlainText(element) : new MarkdownText(element);
  }

  #text() {
    return this.#item.blocks.map(textOf).join("");
  }
}

/** The text of a person, shown as it was written. */
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
