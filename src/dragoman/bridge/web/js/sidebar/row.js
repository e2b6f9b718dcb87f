/** One session in the list. The row lives as long as the session, and only changed parts are updated. */

import { el, fill, icon, iconButton } from "../page/dom.js";
import { explain } from "../connection/failure.js";
import { oneLine, visible } from "../text/safe.js";
import { ago, lastName, millis } from "./groups.js";

/** @param {bridge.SessionFacts} facts */
export function titleOf(facts) {
  return oneLine(facts.title ?? "") || "New session";
}

export class SessionRow {
  #written = "";
  /** @type {HTMLInputElement | null} */
  #input = null;

  /**
   * `actions`: {open(id), menu(id, anchor), select(id)}
   *
   * @param {string} id
   * @param {{ open: (id: string) => void, menu: (id: string, anchor: HTMLElement) => void, select: (id: string) => void }} actions
   */
  constructor(id, actions) {
    this.id = id;
    this.title = el("span", { class: "session-title", dir: "auto" });
    this.meta = el("span", { class: "session-meta" });
    this.open = el("button", { type: "button", class: "session-open", tabindex: "-1", onclick: () => actions.open(id) }, this.title, this.meta);
    this.more = iconButton("more", "More", () => actions.menu(id, this.more), {
      class: "session-more", tabindex: "-1", "aria-haspopup": "menu", "aria-expanded": "false",
    });
    this.box = el("input", { type: "checkbox", class: "session-select", hidden: true, onchange: () => actions.select(id) });
    this.element = el("li", { class: "session-item", dataset: { session: id } }, this.box, this.open, this.more);
  }

  /**
   * Let the user edit the title in place. Enter and leaving the field save it, and Escape does not.
   *
   * @param {(title: string) => void} keep
   */
  rename(keep) {
    if (this.#input) return;
    const before = this.title.textContent ?? "";
    const input = el("input", { class: "input session-rename", value: before, "aria-label": "Title of the session", maxlength: "200", spellcheck: "false" });
    this.#input = input;
    /** @param {{ keeps: boolean, refocus: boolean }} how */
    const finish = ({ keeps, refocus }) => {
      if (this.#input !== input) return;
      this.#input = null;
      input.remove();
      this.open.hidden = false;
      if (refocus) this.open.focus();
      const title = input.value.trim();
      if (keeps && title && title !== before) keep(title);
    };
    input.addEventListener("keydown", (event) => {
      if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
      event.preventDefault();
      event.stopPropagation();
      finish({ keeps: event.key === "Enter", refocus: true });
    });
    // Reordering the list takes the focus and returns it at once.
    input.addEventListener("blur", () => queueMicrotask(() => {
      if (document.activeElement !== input) finish({ keeps: true, refocus: false });
    }));
    this.open.hidden = true;
    this.element.prepend(input);
    input.focus();
    input.select();
  }

  /**
   * @param {bridge.SessionFacts} facts
   * @param {{ current: boolean, showDirectory: boolean, hasMenu: boolean, selected: boolean | null }} shown
   */
  update(facts, { current, showDirectory, hasMenu, selected }) {
    const title = titleOf(facts);
    const time = ago(millis(facts.updatedAt));
    const where = showDirectory && facts.cwd ? visible(lastName(facts.cwd)) : "";
    // A question is more important than the directory, and there is no room for both.
    const place = facts.pending > 0 ? "" : where;
    const written = JSON.stringify([title, time, where, facts.state, facts.pending, facts.viewers, facts.error?.message, current, hasMenu, selected]);
    if (written === this.#written) return;
    this.#written = written;
    this.title.textContent = title;
    this.open.title = facts.cwd ? `${title}\n${visible(facts.cwd)}` : title;
    if (current) this.open.setAttribute("aria-current", "true");
    else this.open.removeAttribute("aria-current");
    this.element.classList.toggle("current", current);
    this.more.hidden = !hasMenu;
    this.box.hidden = selected === null;
    this.box.checked = selected === true;
    this.box.setAttribute("aria-label", `Select ${title}`);
    this.more.setAttribute("aria-label", `More actions for ${title}`);
    fill(this.meta, badges(facts), place && el("span", { class: "session-where" }, place), time && el("span", { class: "session-time" }, time));
  }
}

/** @param {bridge.SessionFacts} facts */
function badges({ state, pending, viewers, error }) {
  const found = [];
  if (pending > 0) {
    const words = pending === 1 ? "1 request waiting" : `${pending} requests waiting`;
    found.push(el("span", { class: "chip chip-warn session-badge" }, icon("shield"), words));
  } else if (state === "running") {
    found.push(el("span", { class: "session-state" }, el("span", { class: "dot dot-busy" }), "Running"));
  }
  if (state === "gone") found.push(el("span", { class: "session-state faint", title: error ? explain(error) : "" }, el("span", { class: "dot dot-bad" }), "History only"));
  else if (error && state !== "running") {
    found.push(el("span", { class: "session-state bad", title: explain(error) }, el("span", { class: "dot dot-bad" }), "Failed"));
  }
  if (viewers > 1) {
    found.push(el("span", { class: "session-viewers", title: `${viewers} viewers` }, icon("eye"), String(viewers),
      el("span", { class: "visually-hidden" }, " viewers")));
  }
  return found;
}
