/**
 * The transcript of the open session. It shows the newest part. Older items are added when the user scrolls up, and
 * removed again while the page follows the newest.
 */

import { el, fill } from "../page/dom.js";
import { onFrame } from "../page/scheduling.js";
import { isMessage } from "../session/transcript.js";
import { CompactionView } from "./compaction.js";
import { MessageView } from "./message.js";
import { SessionMessageView } from "./session_message.js";
import { SubagentView } from "./subagent.js";
import { resendOf, writtenOf } from "./resending.js";
import { ToolCallView } from "./tool_call.js";
import { Scroller } from "./scroller.js";
import { drawStage, endNote, noticeNote } from "./stage.js";

const FIRST_ITEMS = 60;
const MORE_ITEMS = 60;
const MOST_ITEMS = 400;

export class Conversation {
  /** @type {page.App} */
  #app;
  /** @type {page.Session | null} */
  #session = null;
  /** @type {Map<page.Item, page.ItemView>} */
  #views = new Map();
  #first = 0;
  #end = 0;
  /** @type {Set<page.Item>} */
  #changed = new Set();
  #scroller;
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
    const column = el("div", { class: "column" }, this.#older, this.#list, this.#tail);
    const box = el("div", { class: "scroll", tabindex: "-1" }, column);
    this.#scroller = new Scroller(box, column);
    root.append(box, this.#stage, this.#scroller.button);
    new IntersectionObserver(([entry]) => entry.isIntersecting && this.#addOlder(), {
      root: box,
      rootMargin: "400px",
    }).observe(this.#older);
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
    this.#views.clear();
    this.#list.replaceChildren();
    const items = this.#items();
    this.#session?.popChanged();
    this.#changed.clear();
    this.#first = this.#end = Math.max(0, items.length - FIRST_ITEMS);
    this.#scroller.follow();
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
   * Bring the document up to date with the transcript, until the deadline.
   *
   * @param {number} deadline
   */
  #work(deadline) {
    // New items first, then changed ones. At least one new item is drawn per frame. The rest waits for the next
    // frame if the time is up.
    const items = this.#items();
    for (const item of this.#session?.popChanged() ?? []) this.#changed.add(item);
    const before = this.#end;
    if (before < items.length || this.#changed.size > 0) this.#scroller.noteNews();
    while (this.#end < items.length) {
      if (this.#end > before && performance.now() > deadline) return true;
      this.#append(items[this.#end]);
    }
    for (const item of this.#changed) {
      this.#changed.delete(item);
      this.#update(item);
      if (performance.now() > deadline) return this.#changed.size > 0;
    }
    if (this.#end > before) this.#trim();
    return false;
  }

  /** @param {page.Item} item */
  #append(item) {
    const view = this.#make(item);
    this.#end += 1;
    this.#list.append(view.element);
    // The previous item no longer grows.
    const previous = this.#items()[item.n - 1];
    if (previous) this.#update(previous);
  }

  /** @param {page.Item} item */
  #make(item) {
    const view = makeView(item, this.#session, this.#app);
    this.#views.set(item, view);
    this.#changed.delete(item);
    view.update(this.#isLive(item));
    return view;
  }

  /** @param {page.Item} item */
  #update(item) {
    this.#views.get(item)?.update(this.#isLive(item));
  }

  /** @param {page.Item} item */
  #isLive(item) {
    const session = this.#session;
    return session !== null && session.running && !isMessage(item, "user") && session.transcript.isLast(item);
  }

  #addOlder() {
    if (this.#first === 0 || !this.#session) return;
    const items = this.#items();
    const from = Math.max(0, this.#first - MORE_ITEMS);
    const views = items.slice(from, this.#first).map((item) => this.#make(item).element);
    this.#first = from;
    this.#scroller.keepPlace(() => this.#list.prepend(...views));
    onFrame(this.#drawState);
  }

  /**
   * Scroll to an item anywhere in the history and mark it.
   *
   * @param {page.Item | null} item
   */
  #reveal(item) {
    if (!item) return;
    this.#work(Infinity);
    while (this.#first > item.n) this.#addOlder();
    const element = this.#views.get(item)?.element;
    if (!element) return;
    this.#scroller.leave();
    element.scrollIntoView({ block: "center" });
    element.classList.add("revealed");
    setTimeout(() => element.classList.remove("revealed"), 3000);
  }

  #trim() {
    if (!this.#scroller.following || this.#end - this.#first <= MOST_ITEMS) return;
    const items = this.#items();
    const first = this.#end - MOST_ITEMS / 2;
    for (const item of items.slice(this.#first, first)) {
      this.#views.get(item)?.element.remove();
      this.#views.delete(item);
    }
    this.#first = first;
    onFrame(this.#drawState);
  }

  #drawState = () => {
    const left = this.#first;
    this.#older.classList.toggle("has-older", left > 0);
    fill(this.#older, left > 0 && el("span", {}, `${left} older ${left === 1 ? "item" : "items"}`));
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
      return noteView(noticeNote(item));
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
