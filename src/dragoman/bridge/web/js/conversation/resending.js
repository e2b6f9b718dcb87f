/** Resending a message: unchanged, or edited in a fork of the session if the agent supports forks. */

import { baseName } from "./content.js";
import { textOf } from "../session/blocks.js";
import { isMessage } from "../session/transcript.js";

const MOST_NAMED = 200;

/**
 * A message of the user as it was written: its text and its attachments.
 *
 * @param {page.MessageItem} item
 * @returns {{ text: string, attachments: page.Attachment[] }}
 */
export function writtenOf({ blocks }) {
  const attachments = blocks.filter((block) => block.type !== "text").map(attachmentOf);
  return { text: blocks.map(textOf).join(""), attachments };
}

/**
 * How editing and resending a message works with the current agent.
 *
 * @param {page.MessageItem} item
 * @param {page.Session} session
 * @param {page.App} app
 * @returns {page.Resend}
 */
export function resendOf(item, session, app) {
  const written = writtenOf(item);
  if (!app.capabilities.sessionCapabilities?.fork) {
    const words = "This agent cannot fork sessions, so the message was sent at the end of this session.";
    return { ...written, words, open: async () => session };
  }
  const isCut = Boolean(app.capabilities._meta?.["dragoman/fork"]?.before);
  const words = isCut
    ? "Sent in a fork of this session that ends before this message. This session and the files are unchanged."
    : "Sent in a fork of this session. The fork contains the whole conversation, and this session is unchanged.";
  const open = async () => {
    if (isCut && item.messageId === null) await session.history.reach(); // to count equal texts
    await app.forkSession(session.id, isCut ? nameOfMessage(item, session) : null);
    const copy = app.state.session;
    if (!copy) throw new Error("You left the fork before the message was sent.");
    return copy;
  };
  return { ...written, words, open };
}

/**
 * How the agent finds a message: by its id, or by its text and its position among equal texts. A message that
 * was refused is not in the agent's history, so the fork ends before the next message that is.
 *
 * @param {page.MessageItem} item
 * @param {page.Session} session
 * @returns {bridge.NamedMessage}
 */
function nameOfMessage(item, session) {
  if (item.messageId !== null) {
    const later = session.transcript.items.slice(item.n).filter((one) => isMessage(one, "user"));
    return { ids: later.flatMap((one) => one.messageId ?? []).slice(0, MOST_NAMED) };
  }
  const text = item.blocks.map(textOf).join("");
  const same = session.transcript.items.slice(0, item.n + 1).filter((one) => one.type === "message" && one.role === "user" && one.blocks.map(textOf).join("") === text);
  return { text, occurrence: same.length };
}

/**
 * @param {page.Block} block
 * @returns {page.Attachment}
 */
function attachmentOf(block) {
  const isPicture = block.type === "image";
  const bytes = "data" in block && typeof block.data === "string" ? block.data.length : 0;
  return { name: nameOf(block), drawing: isPicture ? "image" : "file", bytes, block: /** @type {acp.ContentBlock} */ (block) };
}

/** @param {page.Block} block */
function nameOf(block) {
  if (block.type === "resource_link") return block.name;
  if (block.type === "resource") return baseName(block.resource?.uri ?? "") || "File";
  return block.type === "image" ? "Image" : "Attachment";
}
