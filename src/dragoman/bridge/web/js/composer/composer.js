/** The message field: text with completion, attachments, send and stop. */

import { Attachments } from "./attachments.js";
import { Completion } from "./completion.js";
import { el, icon, iconButton } from "../page/dom.js";
import { lastText } from "../session/transcript.js";
import { explain } from "../connection/failure.js";

const DRAFT = "dragoman.draft.";
const MOST_HEIGHT_PX = 260;

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
  // Of the sessions that are not open; their texts are in the browser's storage, which is too small for pictures.
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
    this.element = el("div", { class: "composer" }, this.#completion.element, box, this.#files);
    root.append(this.element);
    this.#listen(box);
    this.#enter();
  }

  focus() {
    this.#field.focus({ preventScroll: true });
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
    const area = box.closest("main") ?? document.body;
    area.addEventListener("dragover", (event) => this.#drag(event));
    area.addEventListener("dragleave", () => this.element.classList.remove("dropping"));
    area.addEventListener("drop", (event) => this.#drop(event));
    for (const name of ["session", "connection", "agent"]) this.#app.state.addEventListener(name, () => this.#enter());
  }

  #enter() {
    const id = this.#app.state.session?.id ?? "";
    if (id !== this.#sessionId) this.#moveTo(id);
    this.#draw();
  }

  /** @param {string} id */
  #moveTo(id) {
    const from = this.#sessionId;
    this.#sessionId = id;
    // Text that is typed while a session starts belongs to that session.
    if (this.#starting && from === "") {
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
    this.#field.disabled = this.#app.readOnly || session?.facts.state === "gone" || session?.phase === "failed";
    this.#field.placeholder = this.#field.disabled && why ? why : "Message…";
    this.#attach.disabled = this.#field.disabled;
    this.#send.hidden = running;
    this.#stop.hidden = !running || this.#app.readOnly;
    this.#stop.disabled = Boolean(session?.stopping);
    this.#send.disabled = why !== null || (this.#field.value.trim() === "" && this.#attachments.isEmpty);
    this.#fit();
  }

  /** Why nothing can be sent now, or null. */
  #blocked() {
    const { session, connection } = this.#app.state;
    if (this.#app.readOnly) return "You are reading along; only an owner can write.";
    if (connection.phase !== "open") return "There is no connection right now.";
    if (session?.facts.state === "gone") return "This session can be read, not continued.";
    if (session?.phase === "failed") return "This session cannot be opened.";
    if (session?.phase === "loading") return "The conversation is still loading.";
    if (session?.running) return "The agent is still working; Esc stops it.";
    return this.#starting ? "The session is being started." : null;
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
      this.#submit();
    } else if (event.key === "ArrowUp" && this.#field.value === "") this.#recall(event);
  }

  /**
   * The last message again, to say it better.
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

  async #submit() {
    const why = this.#blocked();
    const text = this.#field.value;
    if (text.trim() === "" && this.#attachments.isEmpty) return;
    if (why !== null) return this.#app.toast(why, "hint");
    const kept = this.#attachments.snapshot();
    const blocks = this.#attachments.take();
    if (text.trim()) blocks.unshift({ type: "text", text });
    this.#write("");
    let id = this.#app.state.session?.id ?? "";
    try {
      const session = this.#app.state.session ?? (await this.#begin());
      id = session.id;
      if (await session.prompt(blocks)) this.#giveBack(text, kept, id);
    } catch (error) {
      this.#giveBack(text, kept, id);
      this.#app.toast(explain(error), "error");
    }
  }

  async #begin() {
    this.#starting = true;
    try {
      await this.#app.newSession();
    } finally {
      this.#starting = false;
    }
    const { session } = this.#app.state;
    if (!session) throw new Error("The session was left before it began.");
    return session;
  }

  /**
   * Put a message back where it was written, unless another one is there by now.
   *
   * @param {string} text
   * @param {page.Attachment[]} attachments
   * @param {string} id
   */
  #giveBack(text, attachments, id) {
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
