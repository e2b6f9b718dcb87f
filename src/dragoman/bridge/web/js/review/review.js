/** The review of all files that the open session changed, with diffs and a revert button for each. */

import { relativePath } from "../conversation/content.js";
import { compareLong, compareShort } from "../conversation/comparing.js";
import { countsOf, DiffView } from "../conversation/diff_view.js";
import { explain } from "../connection/failure.js";
import { el, fill, icon, iconButton } from "../page/dom.js";
import { onFrame } from "../page/scheduling.js";
import { ask } from "../sidebar/dialog.js";
import { visible } from "../text/safe.js";
import { changedFiles, joined } from "./changes.js";

export class Review {
  /** @type {page.App} */
  #app;
  /** @type {page.Session | null} */
  #session = null;
  #drawn = "";
  /**
   * The files reverted here, with their number of changes at that time.
   *
   * @type {Map<string, number>}
   */
  #reverted = new Map();
  #list = el("div", { class: "review-files" });
  #count = el("p", { class: "review-count", role: "status" });
  #note = () => onFrame(this.#draw);

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#app = app;
    const close = iconButton("close", "Back to the conversation", () => app.show("conversation"));
    const head = el("header", { class: "review-head" }, el("h2", {}, "Changed files"), this.#count, close);
    root.append(head, this.#list);
    app.state.addEventListener("session", () => this.#enter());
    app.state.addEventListener("view", () => this.#note());
    this.#enter();
  }

  #enter() {
    const { session } = this.#app.state;
    if (session !== this.#session) {
      for (const name of ["items", "older", "reset", "phase"]) {
        this.#session?.removeEventListener(name, this.#note);
        session?.addEventListener(name, this.#note);
      }
      this.#session = session;
      this.#reverted.clear();
    }
    this.#note();
  }

  #draw = () => {
    if (this.#app.state.view !== "review") return false;
    const session = this.#session;
    if (session?.history.hasOlder) session.history.reach().catch((error) => this.#app.toast(explain(error), "error"));
    const files = session ? changedFiles(session.transcript.items, session.cwd) : [];
    const key = JSON.stringify([session?.id, session?.running, files, [...this.#reverted]]);
    if (key === this.#drawn) return false;
    this.#drawn = key;
    const open = new Set([...this.#list.querySelectorAll("details[open]")].map((one) => one.getAttribute("data-path")));
    this.#count.textContent = files.length === 1 ? "1 file" : `${files.length} files`;
    const empty = el("p", { class: "review-empty" }, "The agent has not changed any files in this session.");
    // A single file is opened at once. Several files are shown as a list.
    fill(this.#list, files.length === 0 && empty, files.map((file) => this.#file(file, open.has(file.path) || files.length === 1)));
    return false;
  };

  /**
   * @param {page.ChangedFile} file
   * @param {boolean} isOpen
   */
  #file(file, isOpen) {
    const cwd = this.#session?.cwd ?? "";
    const changes = joined(file.changes);
    const isReverted = this.#reverted.get(file.path) === file.changes.length;
    const summary = el(
      "summary",
      {},
      icon("chevron", "review-arrow"),
      el("span", { class: "review-path", title: visible(file.path) }, visible(relativePath(file.path, cwd))),
      changes[0]?.oldText === null && el("span", { class: "chip" }, "new file"),
      isReverted ? el("span", { class: "chip" }, "reverted") : counts(changes),
    );
    const body = el("div", { class: "review-body" });
    const details = el("details", { class: "review-file", dataset: { path: file.path }, open: isOpen }, summary, body);
    const show = () => {
      if (!details.open || body.firstChild) return;
      fill(body, this.#actions(file, isReverted), changes.map((change) => diff(file.path, change, cwd)));
      if (changes.length === 0) body.append(el("p", { class: "review-empty" }, "The changes cancel each other out."));
    };
    details.addEventListener("toggle", show);
    show();
    return details;
  }

  /**
   * @param {page.ChangedFile} file
   * @param {boolean} isReverted
   */
  #actions(file, isReverted) {
    if (this.#app.readOnly || isReverted) return null;
    const running = Boolean(this.#session?.running);
    const button = el(
      "button",
      { type: "button", class: "button", disabled: running, onclick: () => this.#revert(file) },
      icon("refresh"),
      "Revert this file",
    );
    return el("div", { class: "review-actions" }, button, running && el("span", { class: "field-hint" }, "Available when the turn has ended."));
  }

  /** @param {page.ChangedFile} file */
  async #revert(file) {
    const session = this.#session;
    if (!session) return;
    const name = visible(relativePath(file.path, session.cwd));
    const isNew = file.changes[0].oldText === null;
    const words = isNew
      ? "The agent created this file. It is deleted unless it changed since."
      : "The agent's changes to this file are undone unless they changed since. The agent is not notified.";
    const done = await ask({
      title: `Revert ${name}?`,
      body: el("p", {}, words),
      action: isNew ? "Delete it" : "Revert",
      danger: true,
      submit: () => session.revert(file.path, file.changes),
    });
    if (!done) return;
    this.#reverted.set(file.path, file.changes.length);
    this.#app.toast(done.exists ? `${name} was reverted.` : `${name} was deleted.`);
    this.#note();
  }
}

/**
 * The number of changed lines. Those of long texts appear when they are counted.
 *
 * @param {page.Change[]} changes
 */
function counts(changes) {
  const element = el("span", { class: "diff-counts" });
  const all = changes.map(({ oldText, newText }) => compareShort(oldText ?? "", newText));
  const isCounted = (/** @type {page.Comparison | null} */ one) => one !== null;
  if (all.every(isCounted)) fill(element, countsOf(total(all)));
  else countLong(element, changes);
  return element;
}

/**
 * @param {HTMLElement} element
 * @param {page.Change[]} changes
 */
async function countLong(element, changes) {
  try {
    const all = await Promise.all(changes.map(({ oldText, newText }) => compareLong(oldText ?? "", newText)));
    fill(element, countsOf(total(all)));
  } catch (error) {
    console.warn("the changed lines were not counted:", error);
  }
}

/** @param {page.Comparison[]} all */
function total(all) {
  const sum = (/** @type {"added" | "removed"} */ side) => all.reduce((count, one) => count + one[side], 0);
  return { added: sum("added"), removed: sum("removed") };
}

/**
 * @param {string} path
 * @param {page.Change} change
 * @param {string} cwd
 */
function diff(path, { oldText, newText }, cwd) {
  return new DiffView({ path, oldText, newText }, (one) => relativePath(one, cwd)).element;
}
