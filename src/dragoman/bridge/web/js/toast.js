/** Short notes on screen, and what is only read aloud. */

import { el, icon, iconButton } from "./dom.js";

const INFO_MS = 4_000;
const ERROR_MS = 12_000;
const MOST = 4;
const ICONS = { info: "check", hint: "help", error: "warning" };

export class Toasts {
  #list = el("section", { class: "toasts", "aria-label": "Notes" });
  #polite = el("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  #alert = el("div", { class: "visually-hidden", role: "alert" });

  constructor(root) {
    root.append(this.#list, this.#polite, this.#alert);
  }

  show(words, kind = "info") {
    const note = el(
      "div",
      { class: `toast toast-${kind}` },
      icon(ICONS[kind]),
      el("span", {}, words),
    );
    note.append(iconButton("close", "Close this note", () => note.remove(), { class: "small" }));
    this.#list.append(note);
    while (this.#list.children.length > MOST) this.#list.firstChild.remove();
    (kind === "error" ? this.#alert : this.#polite).textContent = words;
    setTimeout(() => note.remove(), kind === "error" ? ERROR_MS : INFO_MS);
  }

  announce(words) {
    this.#polite.textContent = words;
  }
}
