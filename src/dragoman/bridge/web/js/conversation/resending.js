/** The ways to say something again: as it was, or better, and then in a copy of the session where the agent can copy. */

import { baseName } from "./content.js";
import { isMessage, textOf } from "../session/transcript.js";

const MOST_NAMED = 200;

/**
 * A message of the user as it was written: its text, and what went with it.
 *
 * @param {page.MessageItem} item
 * @returns {{ text: string, attachments: page.Attachment[] }}
 */
export function writtenOf({ blocks }) {
  const attachments = blocks.filter((block) => block.type !== "text").map(attachmentOf);
  return { text: blocks.map(textOf).join(""), attachments };
}

/**
 * What it means to edit a message and send it again, for the agent at hand.
 *
 * @param {page.MessageItem} item
 * @param {page.Session} session
 * @param {page.App} app
 * @returns {page.Resend}
 */
export function resendOf(item, session, app) {
  const written = writtenOf(item);
  if (!app.capabilities.sessionCapabilities?.fork) {
    const words = "This agent cannot go back: the message is sent at the end of this session.";
    return { ...written, words, open: async () => session };
  }
  const before = app.capabilities._meta?.["dragoman/fork"]?.before ? nameOfMessage(item, session) : null;
  const words = before
    ? "Sent in a copy of this session that ends before this message. This session stays as it is, and so do the files."
    : "Sent in a copy of this session. The copy has all that was said, and this session stays as it is.";
  const open = async () => {
    await app.forkSession(session.id, before);
    const copy = app.state.session;
    if (!copy) throw new Error("The copy was left before the message was sent.");
    return copy;
  };
  return { ...written, words, open };
}

/**
 * How the agent finds a message: by its id, or by its text and which of the messages with this text it is. A message that
 * was refused is not in the agent's own history: then the next one that is there is the end of the copy.
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
  return block.type === "image" ? "Picture" : "Attachment";
}
