/** The inspector: all messages between bridge and agent, as a list or diagram, and one complete message. */

import { el, fill, icon } from "../page/dom.js";
import { oneLine } from "../text/safe.js";
import { explain } from "../connection/failure.js";
import { MessageDetail } from "./detail.js";
import { SequenceDiagram } from "./diagram.js";
import { download, toNdjson, toSvg } from "./export.js";
import { MessageList } from "./list.js";
import { WireLog } from "./log.js";
import { Toolbar } from "./toolbar.js";

/**
 * Build the inspector in `root`. It receives messages only while it is shown.
 *
 * @param {page.App} app
 * @param {HTMLElement} root
 */
export function mountInspector(app, root) {
  return new Inspector(app, root);
}

class Inspector {
  #listening = false;

  /**
   * @param {page.App} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.app = app;
    this.log = new WireLog();
    const choose = (/** @type {page.WireEntry | null} */ entry) => this.#choose(entry);
    const names = () => ["Bridge", this.#agentName()];
    this.list = new MessageList(this.log, choose);
    this.diagram = new SequenceDiagram(this.log, choose, names);
    this.detail = new MessageDetail(app, { choose, close: () => this.#close() });
    this.empty = el("div", { class: "wire-empty" });
    this.toolbar = new Toolbar(app, this.log, {
      setView: (view) => this.#setView(view),
      exportNdjson: () => download(fileName("ndjson"), "application/x-ndjson", toNdjson(this.log.shown)),
      exportSvg: () => download(fileName("svg"), "image/svg+xml", toSvg(this.log.shown, names())),
    });
    this.body = el("div", { class: "wire-body" }, this.empty, this.list.element, this.diagram.element, this.detail.element);
    this.element = fill(root, this.toolbar.element, this.body);
    this.element.classList.add("inspector");
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.log.addEventListener("change", () => this.#refresh());
    app.connection.on("_dragoman/wire", ({ entries }) => this.#listening && this.log.add(entries ?? []));
    for (const name of ["view", "connection"]) app.state.addEventListener(name, () => this.#follow());
    this.#setView("list");
    this.#follow();
  }

  async #follow() {
    const wanted = this.app.state.view === "inspector" && this.app.connection.isOpen;
    if (!this.app.connection.isOpen) this.#listening = false;
    if (wanted === this.#listening) return;
    this.#listening = wanted;
    try {
      const { entries } = await this.app.connection.request("_dragoman/inspect", { on: wanted });
      if (wanted && this.#listening) this.log.add(entries ?? []);
    } catch (error) {
      this.#listening = false;
      if (wanted) this.app.toast(`The messages cannot be shown. ${explain(error)}`, "error");
    }
  }

  /** @param {string} view */
  #setView(view) {
    this.view = view;
    this.toolbar.showView(view);
    this.#refresh();
    if (this.list.chosen) (view === "list" ? this.list : this.diagram).select(this.list.chosen);
  }

  #refresh() {
    const some = this.log.shown.length > 0;
    this.empty.hidden = some;
    this.list.element.hidden = !some || this.view !== "list";
    this.diagram.element.hidden = !some || this.view !== "diagram";
    if (!some) fill(this.empty, icon("wire"), el("p", {}, this.#emptyWords()));
    this.toolbar.refresh();
    if (this.view === "list") this.list.refresh();
    else this.diagram.refresh();
  }

  #emptyWords() {
    if (this.log.entries.length > 0) return "No message matches the filter.";
    return "No messages between the bridge and the agent yet. Send a prompt in a session.";
  }

  /** @param {page.WireEntry | null} entry */
  #choose(entry) {
    this.detail.show(entry);
    this.list.select(entry);
    this.diagram.select(entry);
    this.body.classList.toggle("with-detail", entry !== null);
  }

  #close() {
    this.#choose(null);
    (this.view === "list" ? this.list.element : this.diagram.scroller).focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== "Escape" || this.detail.element.hidden) return;
    event.preventDefault();
    event.stopPropagation();
    this.#close();
  }

  #agentName() {
    const info = this.app.initialized?.agentInfo;
    return oneLine(info?.title || info?.name || this.app.agentName || "Agent");
  }
}

/** @param {string} ending */
function fileName(ending) {
  return `wire-${new Date().toISOString().replaceAll(/[:.]/g, "-")}.${ending}`;
}
