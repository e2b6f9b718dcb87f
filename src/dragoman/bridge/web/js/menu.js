/** A panel that a button opens; a click elsewhere or Esc closes it. */

import { el } from "./dom.js";

export class Menu {
  #button;
  #panel;

  constructor(button, panel) {
    this.#button = button;
    this.#panel = panel;
    panel.hidden = true;
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => this.toggle());
    this.element = el("div", { class: "menu" }, button, panel);
    document.addEventListener(
      "pointerdown",
      (event) => this.isOpen && !this.element.contains(event.target) && this.close(),
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
