/** The completion list at the caret: commands after a slash, files after an at sign. */

import { el, fill } from "../page/dom.js";
import { oneLine } from "../text/safe.js";
import { directoriesOf, fittingPaths, knownPaths } from "./paths.js";

const MOST = 8;
// The most recently named files come before the files on disk.
const MOST_NAMED = 3;
const PAUSE_MS = 60;

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
  /**
   * The last result of the file search, with its query.
   *
   * @type {{ query: string, files: string[], isWhole: boolean } | null}
   */
  #disk = null;
  #timer = 0;
  /** Whether the user has selected an entry with the arrow keys. */
  #moved = false;
  #list = el("ul", { role: "listbox", id: "completion", "aria-label": "Suggestions" });
  #hint = el("p", { class: "completion-foot" });

  /**
   * `onmention(path)` is called with the selected file.
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
   * Handle a key. Return whether it was used.
   *
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (!this.isOpen) return false;
    if (this.#choices.length === 0 && event.key !== "Escape") return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    this.#moved ||= step !== undefined;
    if (step) this.#mark((this.#at + step + this.#choices.length) % this.#choices.length);
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) this.#insert(this.#choices[this.#at]);
    else if (event.key === "Escape") this.close();
    else return false;
    return true;
  }

  close() {
    this.element.hidden = true;
    this.#disk = null;
    this.#moved = false;
    clearTimeout(this.#timer);
    this.#field.removeAttribute("aria-activedescendant");
  }

  #look() {
    const before = this.#field.value.slice(0, this.#field.selectionStart);
    const command = /^\/(\S*)$/.exec(before);
    const mentioned = /(?:^|\s)@([^\s@]*)$/.exec(before);
    if (command) this.#offer(this.#commands(command[1]), 0, before.length);
    else if (mentioned) this.#mentioned(mentioned[1], before.length);
    else this.close();
  }

  /**
   * Offer the known files at once, and the files on disk when they arrive.
   *
   * @param {string} typed
   * @param {number} end
   */
  #mentioned(typed, end) {
    this.#offer(this.#files(typed), end - typed.length - 1, end);
    if (this.#disk?.query === typed) return;
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#ask(typed), this.#disk ? PAUSE_MS : 0);
  }

  /** @param {string} typed */
  async #ask(typed) {
    const found = await this.#app.findFiles(typed).catch(() => ({ files: [], isWhole: false }));
    // The user may have typed more.
    if (this.element.hidden || this.#typed() !== typed) return;
    this.#disk = { query: typed, ...found };
    const at = this.#choices[this.#at]?.text;
    this.#offer(this.#files(typed), ...this.#range);
    const again = this.#choices.findIndex(({ text }) => text === at);
    if (this.#moved && again > 0) this.#mark(again);
  }

  #typed() {
    const before = this.#field.value.slice(0, this.#field.selectionStart);
    return /(?:^|\s)@([^\s@]*)$/.exec(before)?.[1] ?? null;
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
    // A path at the start of a message is not a command and needs no hint.
    if (known.length > 0 || typed) return { choices, hint: "" };
    return {
      choices,
      hint: session ? "This agent has no commands." : "The agent lists its commands when a session has started.",
    };
  }

  /** @param {string} typed */
  #files(typed) {
    const cwd = this.#app.state.session?.cwd ?? this.#app.config.cwd ?? "";
    const known = knownPaths(this.#app.transcriptsIn(cwd), cwd);
    const disk = this.#disk?.files ?? [];
    const named = fittingPaths(known, typed);
    // Offer all named files until the search has answered. A named file may be deleted by then.
    const first = this.#disk ? named.slice(0, MOST_NAMED) : named;
    const files = [...new Set([...first, ...fittingPaths(disk, typed), ...disk])];
    const directories = typed ? fittingPaths(directoriesOf([...known, ...disk]), typed).filter((path) => path !== typed) : [];
    const room = Math.max(MOST - 1 - Math.min(directories.length, 2), 0);
    const choices = [...files.slice(0, room).map(mention), ...directories.map(directory)].slice(0, typed ? MOST - 1 : MOST);
    // The disk may have more files than listed, so a typed path is offered as well.
    if (typed && !files.includes(typed)) choices.push({ ...mention(typed), name: typed, words: "mention this path" });
    const hint = this.#hintOf(files.length, cwd);
    return { choices, hint };
  }

  /**
   * @param {number} found
   * @param {string} cwd
   */
  #hintOf(found, cwd) {
    if (!this.#disk) return found > 0 ? "" : "Looking for files…";
    if (found === 0) return `No file matches. Paths are relative to ${cwd}.`;
    return this.#disk.isWhole ? "" : "Not all files are listed. You can type any path.";
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
      this.#insert(choice);
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
  #insert(choice) {
    const [start, end] = this.#range;
    this.#field.setRangeText(choice.text, start, end, "end");
    this.close();
    if (choice.path) this.#onmention(choice.path);
    this.#field.dispatchEvent(new Event("input", { bubbles: true }));
    if (!choice.continues) this.close();
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
 * Selecting a directory lists its content.
 *
 * @param {string} path
 * @returns {page.Choice}
 */
function directory(path) {
  return { text: `@${path}`, name: path, hint: "", words: "directory", continues: true };
}
