/** The list under the caret: commands after a slash, files after an at sign. */

import { el, fill } from "../page/dom.js";
import { oneLine } from "../text/safe.js";
import { directoriesOf, fittingPaths, knownPaths } from "./paths.js";

const MOST = 8;

export class Completion {
  #field;
  /** @type {page.App} */
  #app;
  #onmention;
  /** @type {page.Choice[]} */
  #choices = [];
  #at = 0;
  /** @type {[number, number]} */
  #range = [0, 0];
  #list = el("ul", { role: "listbox", id: "completion", "aria-label": "Suggestions" });
  #hint = el("p", { class: "completion-foot" });

  /**
   * `onmention(path)` is told which file was chosen.
   *
   * @param {HTMLTextAreaElement} field
   * @param {page.App} app
   * @param {(path: string) => void} onmention
   */
  constructor(field, app, onmention) {
    this.#field = field;
    this.#app = app;
    this.#onmention = onmention;
    this.element = el("div", { class: "completion", hidden: true }, this.#list, this.#hint);
    for (const [name, value] of Object.entries({
      "aria-controls": "completion",
      "aria-haspopup": "listbox",
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

  /**
   * Take a key; returns whether it meant something.
   *
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (!this.isOpen) return false;
    if (this.#choices.length === 0 && event.key !== "Escape") return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#mark((this.#at + step + this.#choices.length) % this.#choices.length);
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) this.#take(this.#choices[this.#at]);
    else if (event.key === "Escape") this.close();
    else return false;
    return true;
  }

  close() {
    this.element.hidden = true;
    this.#field.removeAttribute("aria-activedescendant");
  }

  #look() {
    const before = this.#field.value.slice(0, this.#field.selectionStart);
    const command = /^\/(\S*)$/.exec(before);
    const mentioned = /(?:^|\s)@([^\s@]*)$/.exec(before);
    if (command) this.#offer(this.#commands(command[1]), 0, before.length);
    else if (mentioned) this.#offer(this.#files(mentioned[1]), before.length - mentioned[1].length - 1, before.length);
    else this.close();
  }

  /** @param {string} typed */
  #commands(typed) {
    const { session } = this.#app.state;
    const wanted = typed.toLowerCase();
    const known = session?.transcript.commands ?? [];
    const choices = known
      .filter((one) => one.name.toLowerCase().includes(wanted))
      .sort((a, b) => Number(b.name.toLowerCase().startsWith(wanted)) - Number(a.name.toLowerCase().startsWith(wanted)))
      .map((one) => ({
        text: `/${one.name} `,
        name: `/${one.name}`,
        hint: one.input?.hint ?? "",
        words: one.description ?? "",
      }));
    // A path at the beginning of a message is not a command and needs no hint.
    if (known.length > 0 || typed) return { choices, hint: "" };
    return {
      choices,
      hint: session ? "This agent has named no commands." : "The agent names its commands once a session has begun.",
    };
  }

  /** @param {string} typed */
  #files(typed) {
    const cwd = this.#app.state.session?.cwd ?? this.#app.config.cwd ?? "";
    const known = knownPaths(this.#app.transcriptsIn(cwd), cwd);
    const files = fittingPaths(known, typed);
    const directories = typed ? fittingPaths(directoriesOf(known), typed).filter((path) => path !== typed) : [];
    const choices = [...files.map(mention), ...directories.map(directory)].slice(0, typed ? MOST - 1 : MOST);
    // The page cannot look into the directory, so a path is also taken as it was typed.
    if (typed && !files.includes(typed)) choices.push({ ...mention(typed), name: typed, words: "mention this path" });
    const hint =
      known.length > 0
        ? "Files that were named in this directory's sessions. Any other path can be typed."
        : `No file was named here yet. Type a path; it counts from ${cwd}.`;
    return { choices, hint };
  }

  /**
   * @param {{ choices: page.Choice[], hint: string }} offered
   * @param {number} start
   * @param {number} end
   */
  #offer({ choices, hint }, start, end) {
    this.#choices = choices.slice(0, MOST);
    this.#range = [start, end];
    if (this.#choices.length === 0 && !hint) return this.close();
    fill(
      this.#list,
      this.#choices.map((choice, n) => this.#row(choice, n)),
    );
    if (hint && (!this.isOpen || this.#hint.textContent !== hint)) this.#app.announce(hint);
    this.#hint.textContent = hint;
    this.#list.hidden = this.#choices.length === 0;
    this.#hint.hidden = !hint;
    this.element.hidden = false;
    if (this.#choices.length > 0) this.#mark(0);
    else this.#field.removeAttribute("aria-activedescendant");
  }

  /**
   * @param {page.Choice} choice
   * @param {number} n
   */
  #row(choice, n) {
    /** @param {Event} event */
    const take = (event) => {
      event.preventDefault();
      this.#take(choice);
    };
    return el(
      "li",
      { role: "option", id: `completion-${n}`, onmousedown: take },
      el("span", { class: "completion-name" }, oneLine(choice.name)),
      choice.hint && el("span", { class: "completion-hint" }, oneLine(choice.hint)),
      choice.words && el("span", { class: "completion-words" }, oneLine(choice.words)),
    );
  }

  /** @param {number} n */
  #mark(n) {
    this.#at = n;
    [...this.#list.children].forEach((row, m) => row.setAttribute("aria-selected", String(m === n)));
    this.#list.children[n]?.scrollIntoView({ block: "nearest" });
    this.#field.setAttribute("aria-activedescendant", `completion-${n}`);
  }

  /** @param {page.Choice} choice */
  #take(choice) {
    const [start, end] = this.#range;
    this.#field.setRangeText(choice.text, start, end, "end");
    this.close();
    if (choice.path) this.#onmention(choice.path);
    this.#field.dispatchEvent(new Event("input", { bubbles: true }));
    if (!choice.goesOn) this.close();
  }
}

/**
 * @param {string} path
 * @returns {page.Choice}
 */
function mention(path) {
  const at = path.lastIndexOf("/") + 1;
  return { text: `@${path} `, name: path.slice(at), hint: "", words: path.slice(0, at), path };
}

/**
 * Choosing a directory looks into it.
 *
 * @param {string} path
 * @returns {page.Choice}
 */
function directory(path) {
  return { text: `@${path}`, name: path, hint: "", words: "directory", goesOn: true };
}
