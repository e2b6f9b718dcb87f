/** The inspector's controls: filters, pause, clear, list or diagram, export. */

import { el, fill, icon, iconButton } from "../page/dom.js";
import { oneLine } from "../text/safe.js";
import { NO_FILTER } from "./log.js";

export class Toolbar {
  /**
   * `actions`: {setView(name), exportNdjson(), exportSvg()}
   *
   * @param {page.App} app
   * @param {page.WireLog} log
   * @param {{ setView: (view: string) => void, exportNdjson: () => void, exportSvg: () => void }} actions
   */
  constructor(app, log, actions) {
    this.app = app;
    this.log = log;
    this.text = el("input", {
      class: "input wire-search", type: "search", placeholder: "Search messages", "aria-label": "Search messages",
      autocomplete: "off", spellcheck: "false", oninput: () => this.#filter(),
    });
    this.method = this.#select("Method");
    this.direction = this.#select("Direction", [["", "Both directions"], ["to_agent", "To the agent"], ["from_agent", "From the agent"]]);
    this.session = this.#select("Session");
    this.errors = el("input", { type: "checkbox", onchange: () => this.#filter() });
    this.pause = iconButton("pause", "Pause", () => this.#togglePause(), { "aria-pressed": "false" });
    this.count = el("span", { class: "wire-count", role: "status" });
    this.views = ["list", "diagram"].map((view) => this.#viewButton(view, actions));
    this.element = el(
      "div",
      { class: "wire-toolbar", role: "toolbar", "aria-label": "Inspector" },
      el("div", { class: "wire-views", role: "group", "aria-label": "View" }, this.views),
      this.text,
      el("div", { class: "wire-filters" }, this.method, this.direction, this.session,
        el("label", { class: "wire-errors" }, this.errors, "Errors only")),
      el("div", { class: "wire-actions" }, this.count, this.pause,
        iconButton("trash", "Clear the list", () => log.clear()),
        exportButton("NDJSON", "Export the messages shown as NDJSON", actions.exportNdjson),
        exportButton("SVG", "Export the diagram as SVG", actions.exportSvg)),
    );
    this.refresh();
  }

  refresh() {
    const { entries, shown, dropped, paused, heldCount } = this.log;
    setOptions(this.method, [["", "All methods"], ...this.log.methods().map((name) => [name, oneLine(name)])]);
    setOptions(this.session, [["", "All sessions"], ...this.log.sessions().map((id) => [id, this.#sessionName(id)])]);
    const of = shown.length === entries.length ? "" : ` of ${entries.length.toLocaleString()}`;
    const more = paused ? `, paused: ${heldCount.toLocaleString()} wait` : dropped ? `, ${dropped.toLocaleString()} older dropped` : "";
    this.count.textContent = `${shown.length.toLocaleString()}${of} messages${more}`;
  }

  /** @param {string} view */
  showView(view) {
    for (const button of this.views) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  }

  /**
   * @param {string} name
   * @param {string[][]} options
   */
  #select(name, options = []) {
    const select = el("select", { class: "input wire-select", "aria-label": name, onchange: () => this.#filter() });
    if (options.length > 0) setOptions(select, options);
    return select;
  }

  /**
   * @param {string} view
   * @param {{ setView: (view: string) => void }} actions
   */
  #viewButton(view, actions) {
    const words = view === "list" ? "List" : "Diagram";
    return el("button", { type: "button", class: "wire-view", dataset: { view }, onclick: () => actions.setView(view) }, words);
  }

  #filter() {
    this.log.setFilter({
      ...NO_FILTER, text: this.text.value, method: this.method.value, direction: this.direction.value,
      session: this.session.value, errorsOnly: this.errors.checked,
    });
  }

  #togglePause() {
    const paused = !this.log.paused;
    this.log.setPaused(paused);
    const words = paused ? "Resume" : "Pause";
    this.pause.setAttribute("aria-pressed", String(paused));
    this.pause.setAttribute("aria-label", words);
    this.pause.title = words;
    fill(this.pause, icon(paused ? "play" : "pause"));
  }

  /** @param {string} id */
  #sessionName(id) {
    return oneLine(this.app.state.sessions.get(id)?.title || `Session ${id.slice(0, 8)}`);
  }
}

/**
 * @param {string} words
 * @param {string} label
 * @param {() => void} onclick
 */
function exportButton(words, label, onclick) {
  return el("button", { type: "button", class: "button wire-export", "aria-label": label, title: label, onclick }, icon("download"), words);
}

/**
 * Update the options only if they differ, because an open list would close.
 *
 * @param {HTMLSelectElement} select
 * @param {string[][]} options
 */
function setOptions(select, options) {
  const wanted = JSON.stringify(options);
  if (select.dataset.options === wanted) return;
  select.dataset.options = wanted;
  const chosen = select.value;
  fill(select, options.map(([value, words]) => el("option", { value }, words)));
  select.value = options.some(([value]) => value === chosen) ? chosen : "";
}
