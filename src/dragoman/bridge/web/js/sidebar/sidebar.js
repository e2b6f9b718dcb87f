/** The sidebar, which lists, searches and opens sessions, and has the actions on them. */

import { closestTo, el, fill, find, icon } from "../page/dom.js";
import { explain } from "../connection/failure.js";
import { visible } from "../text/safe.js";
import { FoundList } from "./found.js";
import { groupSessions, wordsOf } from "./groups.js";
import { openMenu } from "./menu.js";
import { agentChoice, askForNewSession } from "./new_session.js";
import { SessionRow, titleOf } from "./row.js";
import { Selection } from "./selection.js";
import { confirmDelete, exportSession } from "./session_actions.js";
import { share } from "./sharing.js";

const SEARCH_PAUSE_MS = 150;
const GROUPING_KEY = "dragoman.sidebar.by";
const MINUTE_MS = 60_000;

/**
 * Build the sidebar in `root`.
 *
 * @param {page.App} app
 * @param {HTMLElement} root
 */
export function mountSidebar(app, root) {
  return new Sidebar(app, root);
}

class Sidebar {
  /** @type {Map<string, SessionRow>} */
  #rows = new Map();
  #order = "";
  #scheduled = false;
  #searching = 0;
  /** @type {Set<"runs" | "archived">} */
  #unfolded = new Set();

  /**
   * @param {page.App} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.app = app;
    this.by = localStorage.getItem(GROUPING_KEY) === "directory" ? "directory" : "day";
    this.create = el("button", { type: "button", class: "button button-primary sidebar-new", onclick: () => this.newSession() }, icon("plus"), "New session");
    this.search = el("input", {
      class: "input sidebar-search", type: "search", maxlength: "200", placeholder: "Search sessions", "aria-label": "Search sessions",
      autocomplete: "off", spellcheck: "false", oninput: () => this.#searched(), onkeydown: (event) => this.#searchKey(event),
    });
    this.grouping = el("select", { class: "sidebar-by", "aria-label": "Group sessions by", onchange: () => this.#regroup() },
      el("option", { value: "day" }, "By day"), el("option", { value: "directory" }, "By project"));
    this.grouping.value = this.by;
    this.agent = agentChoice(app);
    this.agent?.setAttribute("aria-label", "Agent filter");
    this.agent?.addEventListener("change", () => app.chooseAgent(this.agent?.value ?? null));
    this.list = el("div", { class: "session-groups", onkeydown: (event) => this.#listKey(event) });
    this.found = new FoundList(app, (hit) => this.#open(hit.sessionId, hit.seq));
    this.selection = new Selection(app, { changed: () => this.#schedule(), all: () => this.#all() });
    this.foot = el("div", { class: "sidebar-foot" });
    this.element = fill(root,
      el("div", { class: "sidebar-head" }, this.create, this.agent,
        el("div", { class: "sidebar-tools" }, this.search, this.grouping, this.selection.button)),
      el("div", { class: "sidebar-list" }, this.list, this.foot, this.found.element), this.selection.bar);
    this.element.classList.add("sidebar-body");
    for (const name of ["sessions", "session"]) app.state.addEventListener(name, () => this.#schedule());
    app.state.addEventListener("connection", () => this.#connected());
    setInterval(() => this.#schedule(), MINUTE_MS);
    this.#connected();
  }

  /** Ask for the details of a new session. Resolves to its id or null. */
  newSession() {
    if (this.app.readOnly) return Promise.resolve(null);
    return askForNewSession(this.app);
  }

  #connected() {
    this.create.hidden = this.app.readOnly;
    this.selection.button.hidden = !this.#canDelete();
    if (this.agent) this.agent.value = this.app.agentName ?? "";
    // If one agent does not start, a session with another agent may be possible.
    this.create.disabled = !this.app.connection.isOpen && !this.agent;
    if (this.app.connection.isOpen) {
      this.#load(() => this.app.lists.agent.restart());
      this.#loadShown();
      if (this.#isSearching) this.#load(() => this.app.lists.search(this.search.value));
    }
    this.#schedule();
  }

  /** Load the first part of each unfolded list. */
  #loadShown() {
    const { lists } = this.app;
    const shown = [...this.#unfolded].map((fold) => lists.groups[fold]);
    for (const list of [...shown, ...(this.by === "directory" ? [lists.projects] : [])]) {
      if (!list.isLoaded && this.app.connection.isOpen) this.#load(() => list.more());
    }
  }

  get #isSearching() {
    return wordsOf(this.search.value).length > 0;
  }

  /** All sessions of the current list, loaded or not. */
  #all() {
    /** @type {bridge.SessionGroup[]} */
    const groups = ["sessions", ...this.#unfolded];
    return this.app.lists.all({ search: this.search.value, groups });
  }

  /** @param {() => Promise<void>} work */
  async #load(work) {
    try {
      await work();
    } catch (error) {
      if (this.app.connection.isOpen) this.app.toast(`The sessions cannot be listed. ${explain(error)}`, "error");
    }
    this.#schedule();
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#draw();
    });
  }

  #draw() {
    const { lists, state } = this.app;
    const all = [...state.sessions.values()];
    const loaded = this.#isSearching ? all : all.filter((facts) => lists.shows(facts, this.by));
    const groups = groupSessions(loaded, { by: this.by, search: this.search.value }).filter((group) => this.#countOf(group) > 0);
    const shown = groups.flatMap((group) => (this.#isFolded(group) ? [] : group.sessions));
    for (const facts of shown) this.#updateRow(facts);
    this.#arrange(groups);
    this.#drawFoot(groups.length);
    this.#markTabStop(shown);
  }

  /** @param {import("./groups.js").SessionGroup} group */
  #countOf({ fold, sessions }) {
    return fold === null || this.#isSearching ? sessions.length : this.app.lists.count(fold);
  }

  /** @param {bridge.SessionFacts} facts */
  #updateRow(facts) {
    const id = facts.sessionId;
    if (!this.#rows.has(id)) {
      const open = (/** @type {string} */ one) => (this.selection.isOn ? this.selection.toggle(one) : this.#open(one));
      this.#rows.set(id, new SessionRow(id, { open, menu: (one, anchor) => this.#menu(one, anchor), select: (one) => this.selection.toggle(one) }));
    }
    this.#rows.get(id)?.update(facts, {
      current: this.app.state.session?.id === id,
      showDirectory: this.by === "day",
      hasMenu: !this.selection.isOn && this.#menuItems(facts).length > 0,
      selected: this.selection.isOn ? this.selection.has(id) : null,
    });
  }

  /**
   * Whether a group is folded. Archived sessions and those of programs are shown on demand or by a search.
   *
   * @param {import("./groups.js").SessionGroup} group
   */
  #isFolded({ fold }) {
    return fold !== null && !this.#unfolded.has(fold) && !this.#isSearching;
  }

  /**
   * Update the rows. Moving an element loses its focus, so rows are moved only if needed, and the focus is restored.
   *
   * @param {import("./groups.js").SessionGroup[]} groups
   */
  #arrange(groups) {
    const order = JSON.stringify([this.#older(groups), groups.map((group) =>
      [group.heading, group.hint, this.#countOf(group), this.#isFolded(group), this.#olderOf(group), group.sessions.map((one) => one.sessionId)])]);
    if (order === this.#order) return;
    this.#order = order;
    const focused = document.activeElement;
    const kept = focused instanceof HTMLElement && this.list.contains(focused) ? focused.dataset.keep : undefined;
    const firstNew = groups.filter((group) => !this.#isFolded(group)).flatMap(({ sessions }) => sessions).map(({ sessionId }) => this.#rows.get(sessionId))
      .find((row) => !row?.element.isConnected);
    const folds = groups.filter(({ fold }) => fold !== null);
    const others = groups.filter(({ fold }) => fold === null);
    fill(this.list, others.map((group) => this.#group(group)), this.#older(groups) && this.#olderButton("sessions"), folds.map((group) => this.#group(group)));
    // The pressed button is gone after the last sessions were loaded, so focus the first of them.
    if (kept) (find(this.list, `[data-keep="${CSS.escape(kept)}"]`) ?? firstNew?.open)?.focus();
    else if (focused instanceof HTMLElement && focused !== document.activeElement && this.list.contains(focused)) focused.focus();
    const shown = new Set(groups.flatMap((group) => (this.#isFolded(group) ? [] : group.sessions.map((one) => one.sessionId))));
    for (const id of this.#rows.keys()) if (!shown.has(id)) this.#rows.delete(id);
  }

  /** @param {import("./groups.js").SessionGroup} group */
  #group(group) {
    const { heading, hint, sessions, fold } = group;
    const folded = this.#isFolded(group);
    const name = fold ? this.#foldButton(group, folded) : visible(heading);
    const older = this.#olderOf(group);
    return el("section", { class: "session-group", "aria-label": visible(hint || heading) },
      el("h2", { class: "session-heading", title: visible(hint) || null }, name),
      !folded && el("ul", {}, sessions.map((facts) => this.#rows.get(facts.sessionId)?.element)),
      older && this.#olderButton(older));
  }

  /**
   * @param {import("./groups.js").SessionGroup} group
   * @param {boolean} folded
   */
  #foldButton(group, folded) {
    const { heading, fold } = group;
    const turn = () => {
      if (fold === null) return;
      if (folded) this.#unfolded.add(fold);
      else this.#unfolded.delete(fold);
      this.#loadShown();
      this.#schedule();
    };
    const more = !this.#isSearching && this.app.lists.agent.hasMore ? "+" : "";
    return el("button", { type: "button", class: "session-fold", "aria-expanded": String(!folded), dataset: { keep: `fold ${fold}` }, onclick: turn },
      icon("chevron"), heading, el("span", { class: "session-count" }, `${this.#countOf(group)}${more}`));
  }

  // ── older sessions ────────────────────────────────────────────────────────────────────────────

  /**
   * The list of a group with more to load: the name of a fold, or a project.
   *
   * @param {import("./groups.js").SessionGroup} group
   */
  #olderOf(group) {
    if (this.#isSearching || this.#isFolded(group)) return "";
    if (group.fold) return this.app.lists.groups[group.fold].hasMore ? group.fold : "";
    return this.by === "directory" && this.app.lists.projects.of(group.hint)?.hasMore ? group.hint : "";
  }

  /**
   * Whether there are older sessions or projects than the shown ones.
   *
   * @param {import("./groups.js").SessionGroup[]} groups
   */
  #older(groups) {
    const { agent, found, groups: lists, projects } = this.app.lists;
    if (this.#isSearching) return groups.length > 0 && Boolean(found?.hasMore);
    return agent.hasMore || (this.by === "directory" ? projects.hasMore : lists.sessions.hasMore);
  }

  /** @param {string} of */
  #listOf(of) {
    const { found, groups, projects } = this.app.lists;
    if (of === "runs" || of === "archived") return groups[of];
    if (of !== "sessions") return projects.of(of) ?? projects;
    if (this.#isSearching && found) return found;
    return this.by === "directory" ? projects : groups.sessions;
  }

  /** @param {string} of */
  #olderButton(of) {
    const words = of === "sessions" && this.by === "directory" && !this.#isSearching ? "Show older projects" : "Show older sessions";
    const load = () => this.#load(() => this.app.lists.older(this.#listOf(of)));
    return el("button", { type: "button", class: "button sidebar-more", dataset: { keep: `older ${of}` }, onclick: load }, words);
  }

  /** @param {number} groups */
  #drawFoot(groups) {
    const { lists } = this.app;
    if (lists.isEmpty && !lists.agent.isLoading) fill(this.foot, el("p", { class: "sidebar-empty" }, this.#emptyWords()));
    else if (groups === 0 && this.#isSearching) fill(this.foot, el("p", { class: "sidebar-empty", role: "status" }, this.#nothingWords()));
    else fill(this.foot);
  }

  #nothingWords() {
    const { found } = this.app.lists;
    return this.#searching || found?.isLoading ? "Searching…" : "No title matches.";
  }

  #emptyWords() {
    if (!this.app.connection.isOpen) return "";
    return this.app.readOnly ? "There are no sessions yet." : "No sessions yet. Start one, or write a message.";
  }

  /** @param {bridge.SessionFacts[]} shown */
  #markTabStop(shown) {
    const stops = shown.map((facts) => this.#rows.get(facts.sessionId)).filter((row) => row !== undefined);
    const stop = stops.find((row) => row.open === document.activeElement || row.more === document.activeElement)
      ?? stops.find((row) => row.id === this.app.state.session?.id) ?? stops[0];
    for (const row of stops) {
      row.open.tabIndex = row === stop ? 0 : -1;
      row.more.tabIndex = row === stop ? 0 : -1;
    }
  }

  /** Show matching loaded sessions at once, and the others when the bridge has found them. */
  #searched() {
    this.found.search(this.search.value);
    clearTimeout(this.#searching);
    this.#searching = setTimeout(() => {
      this.#searching = 0;
      this.#load(() => this.app.lists.search(this.search.value));
    }, SEARCH_PAUSE_MS);
    this.#schedule();
  }

  #regroup() {
    this.by = this.grouping.value;
    localStorage.setItem(GROUPING_KEY, this.by);
    this.#loadShown();
    this.#schedule();
  }

  /** @param {KeyboardEvent} event */
  #searchKey(event) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      find(this.list, ".session-open")?.focus();
    } else if (event.key === "Escape" && this.search.value) {
      event.stopPropagation();
      this.search.value = "";
      this.#searched();
    } else if (event.key === "Enter") (find(this.list, ".session-open") ?? find(this.found.element, ".found-hit"))?.click();
  }

  /** @param {KeyboardEvent} event */
  #listKey(event) {
    const item = closestTo(event, ".session-item");
    if (event.target instanceof HTMLInputElement) return;
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const opens = [.../** @type {NodeListOf<HTMLElement>} */ (this.list.querySelectorAll(".session-open"))];
    const at = opens.findIndex((open) => item.contains(open));
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: opens.length - 1 }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      if (next < 0) this.search.focus();
      else opens[Math.min(next, opens.length - 1)].focus();
      this.#schedule();
    } else if (event.key === "Delete") {
      event.preventDefault();
      if (this.#canDelete()) this.#delete(item.getAttribute("data-session") ?? "");
    } else if (event.key === "F2") {
      event.preventDefault();
      if (!this.app.readOnly) this.#rename(item.getAttribute("data-session") ?? "");
    } else if (event.key === "ArrowRight") find(item, ".session-more:not([hidden])")?.focus();
    else if (event.key === "ArrowLeft") find(item, ".session-open")?.focus();
  }

  /**
   * @param {string} id
   * @param {number | null} seq
   */
  async #open(id, seq = null) {
    try {
      await this.app.openSession(id);
      this.app.show("conversation");
      if (seq !== null && this.app.state.session?.id === id) await this.app.state.session.reveal(seq);
    } catch (error) {
      this.app.toast(explain(error), "error");
    }
  }

  /**
   * @param {string} id
   * @param {HTMLElement} anchor
   */
  #menu(id, anchor) {
    const facts = this.app.state.sessions.get(id);
    if (facts) openMenu(anchor, this.#menuItems(facts), titleOf(facts));
  }

  /** @param {bridge.SessionFacts} facts */
  #menuItems(facts) {
    if (this.app.readOnly) return [];
    const id = facts.sessionId;
    /** @type {import("./menu.js").MenuItem[]} */
    const items = [{ icon: "pencil", words: "Rename", run: () => this.#rename(id) }];
    if (this.app.capabilities.sessionCapabilities?.fork) items.push({ icon: "fork", words: "Fork", run: () => this.#fork(id) });
    items.push({ icon: "download", words: "Export…", run: () => exportSession(this.app, facts) });
    items.push({ icon: "link", words: "Read-only link…", run: () => share(this.app, facts) });
    items.push({ icon: "archive", words: facts.archived ? "Unarchive" : "Archive", run: () => this.#archive(facts) });
    if (this.#canDelete()) items.push({ icon: "trash", words: "Delete…", danger: true, run: () => this.#delete(id) });
    return items;
  }

  #canDelete() {
    return !this.app.readOnly && Boolean(this.app.capabilities.sessionCapabilities?.delete);
  }

  /** @param {string} id */
  #rename(id) {
    this.#rows.get(id)?.rename(async (title) => {
      try {
        await this.app.renameSession(id, title);
        this.app.announce(`Renamed to ${title}.`);
      } catch (error) {
        this.app.toast(explain(error), "error");
      }
    });
  }

  /** @param {bridge.SessionFacts} facts */
  async #archive({ sessionId, archived }) {
    try {
      await (archived ? this.app.unarchiveSession(sessionId) : this.app.archiveSession(sessionId));
      this.app.toast(archived ? "The session was unarchived." : "The session was archived. The next message continues it.", "info");
      this.search.focus();
    } catch (error) {
      this.app.toast(explain(error), "error");
    }
  }

  /** @param {string} id */
  async #fork(id) {
    try {
      await this.app.forkSession(id);
      this.app.toast("This is the fork. The original session is unchanged.", "info");
    } catch (error) {
      this.app.toast(explain(error), "error");
    }
  }

  /** @param {string} id */
  async #delete(id) {
    const facts = this.app.state.sessions.get(id);
    if (facts && (await confirmDelete(this.app, facts))) this.search.focus();
  }
}
