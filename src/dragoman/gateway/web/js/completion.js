/** The list under the caret: commands after a slash, files after an at sign. */

import { relativePath } from "./content.js";
import { el, fill } from "./dom.js";
import { mentionedPaths } from "./transcript.js";

const MOST = 8;

export class Completion {
  #field;
  #session;
  #onmention;
  #choices = [];
  #at = 0;
  #range = null;

  /** `session()` is the open session or null, `onmention(path)` is told which file was chosen. */
  constructor(field, session, onmention) {
    this.#field = field;
    this.#session = session;
    this.#onmention = onmention;
    this.element = el("ul", {
      class: "completion",
      role: "listbox",
      id: "completion",
      "aria-label": "Suggestions",
      hidden: true,
    });
    for (const [name, value] of Object.entries({
      role: "combobox",
      "aria-controls": "completion",
      "aria-expanded": "false",
      "aria-autocomplete": "list",
    })) {
      field.setAttribute(name, value);
    }
    field.addEventListener("input", () => this.#look());
    field.addEventListener("click", () => this.#look());
    field.addEventListener("blur", () => this.close());
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** Take a key; returns whether it meant something. */
  key(event) {
    if (!this.isOpen) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#mark((this.#at + step + this.#choices.length) % this.#choices.length);
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) this.#take(this.#choices[this.#at]);
    else if (event.key === "Escape") this.close();
    else return false;
    return true;
  }

  close() {
    this.element.hidden = true;
    this.#field.setAttribute("aria-expanded", "false");
    this.#field.removeAttribute("aria-activedescendant");
  }

  #look() {
    const before = this.#field.value.slice(0, this.#field.selectionStart);
    const command = /^\/(\S*)$/.exec(before);
    const mention = /(?:^|\s)@([^\s@]*)$/.exec(before);
    if (command) this.#offer(this.#commands(command[1]), before.length - command[0].length, before.length);
    else if (mention) this.#offer(this.#files(mention[1]), before.length - mention[1].length - 1, before.length);
    else this.close();
  }

  #commands(typed) {
    const wanted = typed.toLowerCase();
    return (this.#session()?.transcript.commands ?? [])
      .filter((one) => one.name.toLowerCase().includes(wanted))
      .sort((a, b) => Number(b.name.toLowerCase().startsWith(wanted)) - Number(a.name.toLowerCase().startsWith(wanted)))
      .map((one) => ({
        text: `/${one.name} `,
        name: `/${one.name}`,
        hint: one.input?.hint ?? "",
        words: one.description ?? "",
      }));
  }

  #files(typed) {
    const session = this.#session();
    const wanted = typed.toLowerCase();
    const known = session ? mentionedPaths(session.transcript) : [];
    const cwd = session?.cwd ?? "";
    const found = known.map((path) => relativePath(path, cwd)).filter((path) => path.toLowerCase().includes(wanted));
    const choices = found.map((path) => ({ text: `@${path} `, name: path, hint: "", words: "", path }));
    // The page cannot look into the directory, so a path is also taken as it was typed.
    if (typed && !found.includes(typed))
      choices.push({ text: `@${typed} `, name: typed, hint: "", words: "mention this path", path: typed });
    return choices;
  }

  #offer(choices, start, end) {
    this.#choices = choices.slice(0, MOST);
    this.#range = [start, end];
    if (this.#choices.length === 0) return this.close();
    fill(
      this.element,
      this.#choices.map((choice, n) => this.#row(choice, n)),
    );
    this.element.hidden = false;
    this.#field.setAttribute("aria-expanded", "true");
    this.#mark(0);
  }

  #row(choice, n) {
    const take = (event) => {
      event.preventDefault();
      this.#take(choice);
    };
    return el(
      "li",
      { role: "option", id: `completion-${n}`, onmousedown: take },
      el("span", { class: "completion-name" }, choice.name),
      choice.hint && el("span", { class: "completion-hint" }, choice.hint),
      choice.words && el("span", { class: "completion-words" }, choice.words),
    );
  }

  #mark(n) {
    this.#at = n;
    [...this.element.children].forEach((row, m) => row.setAttribute("aria-selected", String(m === n)));
    this.element.children[n]?.scrollIntoView({ block: "nearest" });
    this.#field.setAttribute("aria-activedescendant", `completion-${n}`);
  }

  #take(choice) {
    const [start, end] = this.#range;
    this.#field.setRangeText(choice.text, start, end, "end");
    this.close();
    if (choice.path) this.#onmention(choice.path);
    this.#field.dispatchEvent(new Event("input", { bubbles: true }));
    this.close();
  }
}
