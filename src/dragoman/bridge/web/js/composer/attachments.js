/** The attachments of a prompt: pictures, files and mentions that the agent accepts. */

import { baseName } from "../conversation/content.js";
import { explain } from "../connection/failure.js";
import { el, fill, icon, iconButton } from "../page/dom.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const MOST_TEXT_BYTES = 2 * 1024 * 1024;
// Base64 adds a third, and the rest of the message needs room.
const SHARE_OF_MESSAGE = 0.7;
const DEFAULT_MOST_BYTES = 64 * 1024 * 1024;

export class Attachments {
  /** @type {page.App} */
  #app;
  /** @type {page.Attachment[]} */
  #list = [];
  #onchange;

  /**
   * @param {page.App} app
   * @param {() => void} onchange
   */
  constructor(app, onchange) {
    this.#app = app;
    this.#onchange = onchange;
    this.element = el("ul", { class: "attachments", "aria-label": "Attachments", hidden: true });
  }

  get isEmpty() {
    return this.#list.length === 0;
  }

  /**
   * Add files from a button, the clipboard or a drop. Report each unusable file with the reason.
   *
   * @param {Iterable<File>} files
   */
  async addFiles(files) {
    for (const file of files) {
      try {
        this.#add(await this.#read(file));
      } catch (problem) {
        this.#app.toast(`${file.name || "The file"} was not attached: ${explain(problem)}`, "error");
      }
    }
  }

  /**
   * @param {string} path
   * @param {string} cwd
   */
  addMention(path, cwd) {
    const absolute = path.startsWith("/") ? path : `${cwd.replace(/\/$/, "")}/${path}`;
    const uri = `file://${absolute.split("/").map(encodeURIComponent).join("/")}`;
    if (this.#list.some(({ block }) => block.type === "resource_link" && block.uri === uri)) return;
    this.#add({
      name: baseName(path),
      drawing: "file",
      bytes: 0,
      block: { type: "resource_link", uri, name: baseName(path) },
    });
  }

  snapshot() {
    return [...this.#list];
  }

  /** @param {page.Attachment[]} list */
  restore(list) {
    this.#list = list;
    this.#draw();
  }

  /** @param {page.Attachment} attachment */
  #add(attachment) {
    const most = (this.#app.config.maxMessageBytes ?? DEFAULT_MOST_BYTES) * SHARE_OF_MESSAGE;
    const total = this.#list.reduce((sum, one) => sum + one.bytes, attachment.bytes);
    if (total > most) throw new Error(`attachments can have at most ${Math.floor(most / 1e6)} MB in total.`);
    this.#list = [...this.#list, attachment];
    this.#draw();
  }

  /** @param {File} file */
  async #read(file) {
    if (!this.#app.initialized) throw new Error("the agent has not started yet. Try again in a moment.");
    const can = this.#app.capabilities.promptCapabilities ?? {};
    if (PICTURES.has(file.type)) {
      if (!can.image) throw new Error("this agent does not accept images.");
      return this.#picture(file);
    }
    if (file.size > MOST_TEXT_BYTES) throw new Error(`a text file can have at most ${MOST_TEXT_BYTES / 1024 / 1024} MB.`);
    const text = decodeText(await file.arrayBuffer());
    if (text === null) throw new Error("only text files and PNG, JPEG, GIF or WebP images can be attached.");
    return textFile(file, text, can.embeddedContext);
  }

  /**
   * @param {File} file
   * @returns {Promise<page.Attachment>}
   */
  async #picture(file) {
    const data = await toBase64(file);
    return {
      name: file.name || "Image",
      drawing: "image",
      bytes: data.length,
      block: { type: "image", mimeType: file.type, data },
    };
  }

  #draw() {
    this.element.hidden = this.isEmpty;
    fill(
      this.element,
      this.#list.map((one) => {
        const remove = () => this.restore(this.#list.filter((other) => other !== one));
        const look = one.block.type === "image" ? thumbnail(one.block) : icon(one.drawing);
        return el(
          "li",
          { class: "attachment" },
          look,
          el("span", {}, one.name),
          iconButton("close", `Remove ${one.name}`, remove, { class: "small" }),
        );
      }),
    );
    this.#onchange();
  }
}

/** @param {acp.ImageContent} image */
function thumbnail({ mimeType, data }) {
  return el("img", { class: "thumbnail", alt: "", src: `data:${mimeType};base64,${data}` });
}

/**
 * @param {File} file
 * @param {string} text
 * @param {boolean | undefined} embedded
 * @returns {page.Attachment}
 */
function textFile(file, text, embedded) {
  const name = file.name || "Text";
  const uri = `file:///${encodeURIComponent(name)}`;
  /** @type {acp.ContentBlock} */
  const block = embedded
    ? { type: "resource", resource: { uri, mimeType: file.type || "text/plain", text } }
    : { type: "text", text: `\n${name}:\n${fenced(text)}\n` };
  return { name, drawing: "file", bytes: text.length, block };
}

/** @param {string} text */
function fenced(text) {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** @param {ArrayBuffer} buffer */
function decodeText(buffer) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(buffer);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** @param {File} file */
function toBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error("it could not be read."));
    reader.readAsDataURL(file);
  });
}
