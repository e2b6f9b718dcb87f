/** A view of content blocks that grow or are replaced. Text is shown as Markdown. */

import { el } from "../page/dom.js";
import { textOf } from "../session/blocks.js";
import { MarkdownText } from "../text/markdown.js";
import { contentElement } from "./content.js";

export class BlocksView {
  /** @type {Array<{ update?: (text: string, live: boolean) => void }>} */
  #parts = [];
  #round = 0;

  /**
   * @param {string} name the class of its element
   * @param {(element: HTMLElement) => { update: (text: string, live: boolean) => void }} makeText
   */
  constructor(name, makeText = (element) => new MarkdownText(element)) {
    this.element = el("div", { class: name });
    this.makeText = makeText;
  }

  /**
   * Show blocks. The blocks of another round replace all earlier ones.
   *
   * @param {page.Block[]} blocks
   * @param {number} round
   * @param {boolean} live
   */
  update(blocks, round, live) {
    if (round !== this.#round) {
      this.#round = round;
      this.#parts = [];
      this.element.replaceChildren();
    }
    blocks.forEach((block, n) => {
      this.#parts[n] ??= this.#add(block);
      this.#parts[n].update?.(textOf(block), live && n === blocks.length - 1);
    });
  }

  /** @param {page.Block} block */
  #add(block) {
    if (block.type !== "text") {
      this.element.append(contentElement(block));
      return {};
    }
    const element = el("div", { class: "text" });
    this.element.append(element);
    return this.makeText(element);
  }
}
