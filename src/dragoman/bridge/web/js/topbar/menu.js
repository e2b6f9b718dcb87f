/** A panel below a button of the top bar. */

import { el } from "../page/dom.js";

/** A panel that a button opens. A click elsewhere or Escape closes it. */
export class Menu {
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

  /** Called when the panel opens. */
  onopen = () => {};

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
    this.onopen();
  }

  close() {
    this.#panel.hidden = true;
    this.#button.setAttribute("aria-expanded", "false");
  }
}
