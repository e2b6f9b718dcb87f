/**
 * The message field, with completion, attachments, send and stop.
 *
 * Enter sends. During a turn the message is inserted if the agent supports that. Otherwise it waits at the bridge
 * for the end of the turn. Without a connection, or while the session loads or starts, it waits on this page.
 */

import { Attachments } from "./attachments.js";
import { Completion } from "./completion.js";
import { Queue } from "./queue.js";
import { readPlace } from "../app/fragment.js";
import { el, fill, icon, iconButton } from "../page/dom.js";
import { lastText } from "../session/transcript.js";
import { explain } from "../connection/failure.js";

const DRAFT = "dragoman.draft.";
const MOST_HEIGHT_PX = 260;

/**
 * A written message for the session with this id, or "" for a new session.
 *
 * @typedef {{ id: string, name: string, text: string, attachments: page.Attachment[], blocks: acp.ContentBlock[] }} Message
 */

let names = 0;

export class Composer {
  /** @type {page.App} */
  #app;
  #field;
  #attachments;
  #completion;
  #send;
  #stop;
  #attach;
  #files = el("input", { type: "file", multiple: true, hidden: true });
  /** @type {string | undefined} */
  #sessionId = undefined;
  #starting = false;
  #queue;
  /** @type {Message[]} */
  #pending = [];
  /** @type {page.Resend | null} */
  #resend = null;
  #resendNote = el("div", { class: "resend", hidden: true });
  // Attachments of other sessions' drafts. Their texts are in the browser's storage, which is too small for pictures.
  #keptAttachments = new Map();

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#app = app;
    this.#field = el("textarea", {
      class: "composer-field",
      rows: "1",
      placeholder: "Message…",
      "aria-label": "Message",
      enterkeyhint: "send",
    });
    this.#attachments = new Attachments(app, () => this.#draw());
    this.#completion = new Completion(
      this.#field,
      app,
      (path) => this.#mention(path),
    );
    this.#queue = new Queue(app, {
      edit: (name) => this.#editPending(name),
      remove: (name) => this.#forget(name),
    });
    this.#send = el(
      "button",
      { type: "button", class: "send", "aria-label": "Send", title: "Send (Enter)", onclick: () => this.#submit() },
      icon("send"),
    );
    this.#stop = el(
      "button",
      {
        type: "button",
        class: "send stop",
        "aria-label": "Stop",
        title: "Stop (Esc)",
        onclick: () => app.state.session?.cancel(),
      },
      icon("stop"),
    );
    this.#attach = iconButton("attach", "Attach files", () => this.#files.click());
    const box = el(
      "div",
      { class: "composer-box" },
      this.#attachments.element,
      this.#field,
      el(
        "div",
        { class: "composer-bar" },
        this.#attach,
        (this.options = el("div", { class: "options" })),
        this.#send,
        this.#stop,
      ),
    );
    this.element = el(
      "div",
      { class: "composer" },
      this.#queue.element,
      this.#resendNote,
      el("div", { class: "composer-place" }, this.#completion.element, box),
      this.#files,
    );
    root.append(this.element);
    this.#listen(box);
    this.#enter();
  }

  focus() {
    this.#field.focus({ preventScroll: true });
  }

  /**
   * Replace the draft by a message for the user to send.
   *
   * @param {string} text
   */
  propose(text) {
    this.#write(text);
    this.focus();
  }

  /** @param {HTMLElement} box */
  #listen(box) {
    this.#field.addEventListener("input", () => this.#edited());
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    this.#field.addEventListener("paste", (event) => this.#paste(event));
    this.#files.addEventListener("change", () => {
      this.#attachments.addFiles([...(this.#files.files ?? [])]).then(() => this.focus());
      this.#files.value = "";
    });
    // After a reload, waiting messages are in the field again, because they were not sent.
    addEventListener("pagehide", () => this.#returnPending());
    const area = box.closest("main") ?? document.body;
    area.addEventListener("dragover", (event) => this.#drag(event));
    area.addEventListener("dragleave", () => this.element.classList.remove("dropping"));
    area.addEventListener("drop", (event) => this.#drop(event));
    for (const name of ["session", "connection", "agent"]) this.#app.state.addEventListener(name, () => this.#enter());
  }

  #enter() {
    const id = this.#target();
    if (id !== this.#sessionId) this.#moveTo(id);
    this.#flush();
    this.#draw();
  }

  /** The session of a new message. While the page connects, it is the one in the URL. */
  #target() {
    return this.#app.state.session?.id ?? readPlace().session ?? "";
  }

  /** @param {string} id */
  #moveTo(id) {
    const from = this.#sessionId;
    this.#sessionId = id;
    this.#setResend(null);
    // Text typed while a session starts belongs to that session.
    if (this.#starting && from === "") {
      for (const message of this.#pending) if (message.id === "") message.id = id;
      sessionStorage.removeItem(DRAFT);
      this.#edited();
      return;
    }
    if (from !== undefined) this.#keptAttachments.set(from, this.#attachments.snapshot());
    this.#field.value = sessionStorage.getItem(DRAFT + id) ?? "";
    this.#attachments.restore(this.#keptAttachments.get(id) ?? []);
    this.#keptAttachments.delete(id);
    if (matchMedia("(hover: hover)").matches) this.focus();
  }

  #draw() {
    const { session } = this.#app.state;
    const running = Boolean(session?.running);
    const why = this.#blocked();
    const isEmpty = this.#field.value.trim() === "" && this.#attachments.isEmpty;
    this.#field.disabled = why !== null;
    this.#field.placeholder = why ?? (running ? this.#hintOfTurn() : "Message…");
    this.#attach.disabled = this.#field.disabled;
    this.#send.hidden = running && isEmpty;
    this.#send.disabled = why !== null || isEmpty;
    const label = !running ? "Send" : this.#app.canSteer ? "Add to this turn" : "Send after this turn";
    this.#send.setAttribute("aria-label", label);
    this.#send.title = `${label} (Enter)`;
    this.#stop.hidden = !running || this.#app.readOnly;
    this.#stop.disabled = Boolean(session?.stopping);
    this.#queue.draw(this.#rows());
    this.#fit();
  }

  #hintOfTurn() {
    return this.#app.canSteer ? "Add to the current turn…" : "Message for the next turn…";
  }

  #rows() {
    const here = this.#pending.filter(({ id }) => id === this.#sessionId);
    return here.map(({ name, text, attachments }) => ({
      id: name,
      text,
      attachments: attachments.map((one) => one.name),
      isHere: true,
    }));
  }

  /** Why the field is disabled, or null. */
  #blocked() {
    const { session } = this.#app.state;
    if (session?.facts.parent !== undefined) return "You cannot send messages to a subagent.";
    if (this.#app.readOnly) return "You have read-only access.";
    if (session?.facts.state === "gone") return "This session is read-only.";
    return session?.phase === "failed" ? "This session cannot be opened." : null;
  }

  /** Whether a message can be sent now. */
  #isReady() {
    const { session, connection } = this.#app.state;
    if (connection.phase !== "open" || this.#starting) return false;
    return session ? session.phase === "ready" && !session.stale : readPlace().session === null;
  }

  #fit() {
    const { style } = this.#field;
    if (CSS.supports("field-sizing", "content")) return;
    style.height = "auto";
    style.height = `${Math.min(this.#field.scrollHeight, MOST_HEIGHT_PX)}px`;
  }

  #edited() {
    sessionStorage.setItem(DRAFT + this.#sessionId, this.#field.value);
    this.#draw();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) return;
    if (this.#completion.key(event)) return event.preventDefault();
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.#submit({ later: event.ctrlKey || event.metaKey });
    } else if (event.key === "ArrowUp" && this.#field.value === "") this.#recall(event);
  }

  /**
   * Edit the last message again.
   *
   * @param {KeyboardEvent} event
   */
  #recall(event) {
    const text = lastText(this.#app.state.session?.transcript, "user");
    if (!text) return;
    event.preventDefault();
    this.#write(text);
  }

  /** @param {string} text */
  #write(text) {
    this.#field.value = text;
    this.#field.setSelectionRange(text.length, text.length);
    this.#edited();
  }

  /** @param {{ later?: boolean }} options `later`: after the running turn, not during it */
  #submit({ later = false } = {}) {
    const why = this.#blocked();
    const text = this.#field.value;
    if (text.trim() === "" && this.#attachments.isEmpty) return;
    if (why !== null) return this.#app.toast(why, "hint");
    const message = this.#message(text, this.#attachments.snapshot());
    this.#attachments.restore([]);
    this.#write("");
    const resend = this.#resend;
    this.#setResend(null);
    if (resend) return this.#sendInCopy(message, resend);
    this.#pending.push(message);
    this.#flush({ later });
    this.#draw();
  }

  /**
   * @param {string} text
   * @param {page.Attachment[]} attachments
   * @returns {Message}
   */
  #message(text, attachments) {
    const blocks = attachments.map(({ block }) => block);
    if (text.trim()) blocks.unshift({ type: "text", text });
    return { id: this.#sessionId ?? "", name: `here-${(names += 1)}`, text, attachments, blocks };
  }

  /**
   * Send the waiting messages in order, once possible. Each message is removed before it is sent: whatever
   * happens then, it is not sent twice.
   *
   * @param {{ later?: boolean }} options
   */
  #flush({ later = false } = {}) {
    if (this.#blocked() !== null) return this.#returnPending();
    const { session } = this.#app.state;
    const isNext = (/** @type {Message} */ { id }) => id === (session?.id ?? "");
    while (this.#isReady() && this.#pending.some(isNext)) {
      if (!session) {
        this.#start();
        return;
      }
      const [message] = this.#pending.splice(this.#pending.findIndex(isNext), 1);
      this.#deliver(session, message, later);
    }
  }

  /** Return waiting messages to the field if their session cannot receive them. */
  #returnPending() {
    const waiting = this.#pending.find(({ id }) => id === this.#sessionId);
    this.#pending = this.#pending.filter(({ id }) => id !== this.#sessionId);
    if (waiting) this.#restoreDraft(waiting);
  }

  async #start() {
    try {
      await this.#begin();
    } catch (error) {
      this.#returnPending();
      this.#app.toast(explain(error), "error");
    }
    this.#flush();
    this.#draw();
  }

  /**
   * @param {page.Session} session
   * @param {Message} message
   * @param {boolean} later
   */
  async #deliver(session, message, later) {
    message.id = session.id;
    try {
      if (!session.running) {
        if (await session.prompt(message.blocks)) this.#restoreDraft(message);
      } else if (later || !(await this.#steer(session, message))) await session.enqueue(message.blocks);
    } catch (error) {
      this.#restoreDraft(message);
      this.#app.toast(explain(error), "error");
    }
  }

  /**
   * @param {page.Session} session
   * @param {Message} message
   */
  async #steer(session, { blocks }) {
    // A turn that is being stopped accepts no messages.
    if (!this.#app.canSteer || session.stopping) return false;
    try {
      return await session.steer(blocks);
    } catch (error) {
      if (!this.#app.connection.isOpen) throw error;
      this.#app.toast(`The agent did not accept the message during this turn: ${explain(error)}`, "hint");
      return false;
    }
  }

  /**
   * Edit an earlier message and send it again, in a fork of the session if the agent supports forks.
   *
   * @param {page.Resend} resend
   */
  rewrite(resend) {
    this.#attachments.restore(resend.attachments);
    this.#write(resend.text);
    this.#setResend(resend);
    this.focus();
  }

  /**
   * Send an earlier message again, unchanged, in the open session.
   *
   * @param {{ text: string, attachments: page.Attachment[] }} written
   */
  resend({ text, attachments }) {
    this.#pending.push(this.#message(text, attachments));
    this.#flush();
    this.#draw();
  }

  /** @param {page.Resend | null} resend */
  #setResend(resend) {
    this.#resend = resend;
    this.#resendNote.hidden = resend === null;
    if (!resend) return;
    const leave = () => {
      this.#setResend(null);
      this.#attachments.restore([]);
      this.#write("");
    };
    const cancel = el("button", { type: "button", class: "text-button", onclick: leave }, "Cancel");
    fill(this.#resendNote, icon("pencil"), el("span", {}, resend.words), cancel);
    this.#app.announce(resend.words);
  }

  /**
   * @param {Message} message
   * @param {page.Resend} resend
   */
  async #sendInCopy(message, resend) {
    try {
      const session = await resend.open();
      await this.#deliver(session, message, false);
    } catch (error) {
      this.#restoreDraft(message);
      this.#app.toast(explain(error), "error");
    }
  }

  /** @param {string} name */
  #editPending(name) {
    const message = this.#forget(name);
    if (message) this.#restoreDraft(message);
    this.focus();
  }

  /** @param {string} name */
  #forget(name) {
    const message = this.#pending.find((one) => one.name === name);
    this.#pending = this.#pending.filter((one) => one !== message);
    this.#draw();
    return message;
  }

  async #begin() {
    this.#starting = true;
    try {
      await this.#app.newSession();
    } finally {
      this.#starting = false;
    }
    const { session } = this.#app.state;
    if (!session) throw new Error("You left the session before it started.");
    return session;
  }

  /**
   * Return a message to its draft, unless the draft has other text by now.
   *
   * @param {Message} message
   */
  #restoreDraft({ text, attachments, id }) {
    if (id !== this.#sessionId) {
      if (sessionStorage.getItem(DRAFT + id)) return;
      sessionStorage.setItem(DRAFT + id, text);
      this.#keptAttachments.set(id, attachments);
    } else if (this.#field.value === "" && this.#attachments.isEmpty) {
      this.#attachments.restore(attachments);
      this.#write(text);
    }
  }

  /** @param {string} path */
  #mention(path) {
    const cwd = this.#app.state.session?.cwd ?? this.#app.config.cwd;
    this.#attachments.addMention(path, cwd);
  }

  /** @param {ClipboardEvent} event */
  #paste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    this.#attachments.addFiles(files);
  }

  /** @param {DragEvent} event */
  #drag(event) {
    if (!event.dataTransfer?.types.includes("Files") || this.#field.disabled) return;
    event.preventDefault();
    this.element.classList.add("dropping");
  }

  /** @param {DragEvent} event */
  #drop(event) {
    this.element.classList.remove("dropping");
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length === 0 || this.#field.disabled) return;
    event.preventDefault();
    this.#attachments.addFiles(files).then(() => this.focus());
  }
}
