/**
 * The transcript of the open session. It shows the end first. Only the items near the visible part are in the document
 * (`item_window.js`), and earlier parts of the history are loaded when the user scrolls up.
 */

import { explain } from "../connection/failure.js";
import { el, fill } from "../page/dom.js";
import { onFrame } from "../page/scheduling.js";
import { isMessage } from "../session/transcript.js";
import { restoreSections } from "../text/sections.js";
import { CompactionView } from "./compaction.js";
import { FindBar } from "./find_bar.js";
import { ItemWindow } from "./item_window.js";
import { MessageView } from "./message.js";
import { SessionMessageView } from "./session_message.js";
import { SubagentView } from "./subagent.js";
import { resendOf, writtenOf } from "./resending.js";
import { ToolCallView } from "./tool_call.js";
import { Scroller } from "./scroller.js";
import { drawStage, endNote, noticeNote } from "./stage.js";

// An earlier part is loaded when its place is so near, in heights of the visible part.
const NEAR_HEIGHTS = 3;
const REVEALED_MS = 3_000;

export class Conversation {
  /** @type {page.App} */
  #app;
  /** @type {page.Session | null} */
  #session = null;
  /** @type {Set<page.Item>} */
  #changed = new Set();
  /** @type {page.Item | undefined} */
  #last = undefined;
  #isLoading = false;
  #hasFailed = false;
  #box;
  #scroller;
  #window;
  #older = el("div", { class: "older" });
  #list = el("div", { class: "items", role: "log", "aria-live": "off", "aria-label": "Conversation" });
  #tail = el("div", { class: "tail" });
  #stage = el("div", { class: "stage" });
  #unlisten = () => {};
  #job = (/** @type {number} */ deadline) => this.#work(deadline);

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#app = app;
    const column = el("div", { class: "column" });
    this.#box = el("div", { class: "scroll", tabindex: "-1" }, column);
    this.#scroller = new Scroller(this.#box, column, this.#list);
    this.#window = new ItemWindow(this.#box, this.#list, { scroller: this.#scroller, make: (item) => this.#make(item) });
    column.append(this.#older, ...this.#window.elements, this.#tail);
    const find = new FindBar(app, { box: this.#box, list: this.#list, viewOf: (item) => this.#window.view(item) });
    app.find = () => find.open();
    root.append(find.element, this.#box, this.#stage, this.#scroller.button);
    this.#box.addEventListener("scroll", () => onFrame(this.#job), { passive: true });
    new ResizeObserver(() => onFrame(this.#job)).observe(this.#box);
    addEventListener("beforeprint", () => {
      this.#window.showAll();
      restoreSections();
    });
    addEventListener("afterprint", () => this.#window.showPart());
    for (const name of ["session", "connection", "agent", "introduction"]) app.state.addEventListener(name, () => this.#react());
    this.#react();
  }

  #react() {
    if (this.#app.state.session !== this.#session) this.#enter(this.#app.state.session);
    onFrame(this.#drawState);
  }

  /** @param {page.Session | null} session */
  #enter(session) {
    this.#unlisten();
    this.#session = session;
    this.#restart();
    if (!session) return;
    const items = () => this.#note();
    const restart = () => this.#restart();
    const listeners = {
      items,
      older: () => this.#sync(),
      questions: () => onFrame(this.#drawState),
      reset: restart,
      phase: restart,
      sent: () => this.#scroller.follow(),
      reveal: () => this.#reveal(session.revealed),
    };
    for (const [name, fn] of Object.entries(listeners)) session.addEventListener(name, fn);
    this.#unlisten = () => Object.entries(listeners).forEach(([name, fn]) => session.removeEventListener(name, fn));
  }

  /** Show the end of the transcript. While the history still arrives, show nothing. */
  #restart() {
    const items = this.#items();
    this.#session?.popChanged();
    this.#changed.clear();
    this.#last = items.at(-1);
    this.#hasFailed = false;
    this.#window.restart(items);
    this.#scroller.follow();
    onFrame(this.#job);
    onFrame(this.#drawState);
  }

  /** Take over the items of an earlier part. */
  #sync() {
    this.#window.sync(this.#items());
    onFrame(this.#job);
    onFrame(this.#drawState);
  }

  #items() {
    return this.#session && this.#session.phase !== "loading" ? this.#session.transcript.items : [];
  }

  #note() {
    if (this.#session?.phase === "loading") onFrame(this.#drawState);
    else onFrame(this.#job);
  }

  /**
   * Bring the document up to date with the transcript and the visible part, until the deadline.
   *
   * @param {number} deadline
   */
  #work(deadline) {
    const last = this.#items().at(-1);
    for (const item of this.#session?.popChanged() ?? []) this.#changed.add(item);
    if (last && (last !== this.#last || this.#changed.has(last))) this.#scroller.noteNews();
    // The previous item no longer grows.
    if (this.#last && last !== this.#last) this.#changed.add(this.#last);
    this.#last = last;
    for (const item of this.#changed) {
      this.#changed.delete(item);
      this.#update(item);
      if (performance.now() > deadline) break;
    }
    const more = this.#window.fit(deadline);
    this.#loadOlder();
    return more || this.#changed.size > 0;
  }

  /** @param {page.Item} item */
  #make(item) {
    const view = makeView(item, this.#session, this.#app);
    this.#changed.delete(item);
    view.update(this.#isLive(item));
    return view;
  }

  /** @param {page.Item} item */
  #update(item) {
    this.#window.view(item)?.update(this.#isLive(item));
  }

  /** @param {page.Item} item */
  #isLive(item) {
    const session = this.#session;
    return session !== null && session.running && !isMessage(item, "user") && session.transcript.isLast(item);
  }

  /** Load the part of the history before, if its place is near the visible part. */
  #loadOlder() {
    const session = this.#session;
    if (!session || this.#isLoading || this.#hasFailed || session.phase !== "ready" || !session.history.hasOlder) return;
    if (!this.#window.isAtStart || this.#box.scrollTop > NEAR_HEIGHTS * this.#box.clientHeight) return;
    this.#isLoading = true;
    session.history
      .loadOlder()
      .catch((error) => {
        if (session !== this.#session || !this.#app.connection.isOpen) return;
        this.#hasFailed = true;
        this.#app.toast(explain(error), "error");
      })
      .finally(() => {
        this.#isLoading = false;
        onFrame(this.#drawState);
        if (!this.#hasFailed && this.#app.connection.isOpen) onFrame(this.#job);
      });
  }

  /**
   * Scroll to an item anywhere in the history and mark it.
   *
   * @param {page.Item | null} item
   */
  #reveal(item) {
    if (!item) return;
    this.#scroller.leave();
    const element = this.#window.show(item);
    element.classList.add("revealed");
    setTimeout(() => element.classList.remove("revealed"), REVEALED_MS);
  }

  #drawState = () => {
    const hasOlder = this.#items().length > 0 && Boolean(this.#session?.history.hasOlder);
    const key = `${hasOlder} ${this.#hasFailed}`;
    if (this.#older.dataset.key !== key) {
      this.#older.dataset.key = key;
      this.#older.classList.toggle("has-older", hasOlder);
      const again = () => {
        this.#hasFailed = false;
        this.#loadOlder();
      };
      const words = this.#hasFailed ? "Load earlier messages" : "Loading earlier messages…";
      fill(this.#older, hasOlder && el("button", { type: "button", onclick: again }, words));
    }
    const last = this.#items().at(-1);
    if (last) this.#update(last);
    drawStage(this.#stage, this.#tail, this.#app);
    return false;
  };
}

/**
 * @param {page.Item} item
 * @param {page.Session | null} session
 * @param {page.App} app
 * @returns {page.ItemView}
 */
function makeView(item, session, app) {
  switch (item.type) {
    case "tool":
      return new ToolCallView(item, session?.cwd ?? "");
    case "message":
      return new MessageView(item, session && actionsOf(item, session, app));
    case "compaction":
      return new CompactionView(item);
    case "subagent":
      return new SubagentView(item, app);
    case "session_message":
      return session ? new SessionMessageView(item, session, app) : noteView(el("div"));
    case "notice":
      return noticeView(item);
    case "end":
      return endView(item, session, app);
  }
}

/**
 * @param {page.MessageItem} item
 * @param {page.Session} session
 * @param {page.App} app
 * @returns {page.MessageActions | null}
 */
function actionsOf(item, session, app) {
  if (app.readOnly || item.role !== "user" || session.facts.parent !== undefined) return null;
  return {
    edit: () => app.composer?.rewrite(resendOf(item, session, app)),
    retry: () => app.composer?.resend(writtenOf(item)),
  };
}

/** @param {page.NoticeItem} item */
function noticeView(item) {
  const element = el("div", { class: "item" }, noticeNote(item));
  let version = item.version;
  const update = () => {
    if (item.version === version) return;
    version = item.version;
    element.replaceChildren(noticeNote(item));
  };
  return { element, update };
}

/** @param {HTMLElement} note */
function noteView(note) {
  return { element: el("div", { class: "item" }, note), update: () => {} };
}

/**
 * @param {page.EndItem} item
 * @param {page.Session | null} session
 * @param {page.App} app
 */
function endView(item, session, app) {
  const note = endNote(item);
  const asked = session?.transcript.items.slice(0, item.n).findLast((one) => isMessage(one, "user"));
  const again = session && asked?.type === "message" ? actionsOf(asked, session, app) : null;
  const retry = again && el("button", { type: "button", class: "button end-action", onclick: again.retry }, "Try again");
  // Only the last failure is prominent and offers a retry.
  const update = () => {
    const isLast = Boolean(session?.transcript.isLast(item));
    if (item.error && isLast) note.setAttribute("role", "alert");
    else note.removeAttribute("role");
    if (retry) retry.hidden = !item.error || !isLast || Boolean(session?.running);
  };
  return { element: el("div", { class: "item" }, note, retry), update };
}
