/**
 * The history of a session before its transcript. The page loads the end first, and earlier parts when it needs them.
 */

import { Transcript } from "./transcript.js";

export class SessionHistory {
  #app;
  #session;
  /**
   * The cursor at which the transcript begins, null if that is the beginning of the history.
   *
   * @type {string | null}
   */
  #before = null;
  /** @type {Promise<void> | null} */
  #loading = null;

  /**
   * @param {page.App} app
   * @param {page.Session} session
   */
  constructor(app, session) {
    this.#app = app;
    this.#session = session;
  }

  /** Whether there is a part before the transcript. */
  get hasOlder() {
    return this.#before !== null;
  }

  forget() {
    this.#before = null;
  }

  /**
   * Load the end of the history, as a new transcript.
   *
   * @param {string} end
   */
  async loadEnd(end) {
    const part = await this.#request(end);
    this.#before = part.before;
    return readPart(part);
  }

  /** Load the plan, the usage and so on that earlier parts have set. */
  async loadSettings() {
    if (this.#before === null) return;
    const { transcript } = this.#session;
    const params = { sessionId: this.#session.id, before: this.#before };
    const { updates } = await this.#app.connection.request("_dragoman/settings", params);
    const found = new Transcript();
    for (const update of updates) found.apply(update);
    if (transcript !== this.#session.transcript) return;
    this.#session.noteOlder(transcript.adopt(found));
  }

  /**
   * Load the part before the transcript. `to` is a record that it should reach. Rejects if that fails.
   *
   * @param {number | undefined} to
   */
  loadOlder(to = undefined) {
    this.#loading ??= this.#loadOlder(to).finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  /**
   * Load all parts back to a record, by default the whole history.
   *
   * @param {number} seq
   */
  async reach(seq = 0) {
    while (this.#before !== null && (placeOf(this.#before) ?? 0) >= seq) await this.loadOlder(seq);
  }

  /** @param {number | undefined} to */
  async #loadOlder(to) {
    const { transcript } = this.#session;
    if (this.#before === null) return;
    const part = await this.#request(this.#before, to);
    if (transcript !== this.#session.transcript) return;
    const changed = transcript.prepend(readPart(part));
    this.#before = part.before;
    this.#session.noteOlder(changed);
  }

  /**
   * @param {string} before
   * @param {number | undefined} to
   */
  #request(before, to = undefined) {
    return this.#app.connection.request("_dragoman/history", { sessionId: this.#session.id, before, to });
  }
}

/**
 * The transcript of a part of the history.
 *
 * @param {bridge.HistoryPart} part
 */
function readPart({ updates, before }) {
  const transcript = new Transcript({ isWhole: before === null });
  for (const { update, time, seq } of updates) {
    const changed = transcript.apply(update, time);
    if (changed !== null && typeof changed !== "string") changed.place ??= seq;
  }
  return transcript;
}

/**
 * The record number in a cursor.
 *
 * @param {string | undefined} cursor
 */
export function placeOf(cursor) {
  const seq = Number(cursor?.split(".")[1]);
  return Number.isInteger(seq) ? seq : undefined;
}
