/**
 * All messages, and those that pass the filter. Fires "change" at most once per frame.
 *
 * An entry has the fields of the bridge (n, time, direction, kind, method, id, sessionId, size, latencyMs, line, cut) plus
 * the fields added here: `name` (the method, for a response that of its request), `failed`, and `partner`, the entry
 * of the request that a response answers, or of the response to a request.
 */

const MOST_ENTRIES = 20_000;
// Dropped in batches, so that the array is not moved for every message.
const DROP_AT_ONCE = 2_000;

export class WireLog extends EventTarget {
  /** @type {Map<string, page.WireEntry>} */
  #open = new Map();
  #last = 0;
  /** @type {bridge.WireEntry[]} */
  #held = [];
  #scheduled = false;
  /** @type {((entry: page.WireEntry) => boolean) | null} */
  #test = null;

  constructor() {
    super();
    /** @type {page.WireEntry[]} */
    this.entries = [];
    /** @type {page.WireEntry[]} */
    this.shown = [];
    this.dropped = 0;
    this.paused = false;
    this.filter = NO_FILTER;
  }

  get heldCount() {
    return this.#held.length;
  }

  /** @param {bridge.WireEntry[]} entries */
  add(entries) {
    if (this.paused) this.#held.push(...entries);
    else this.#append(entries);
    if (this.#held.length > MOST_ENTRIES) this.#held.splice(0, this.#held.length - MOST_ENTRIES);
    this.#schedule();
  }

  /** @param {Filter} filter */
  setFilter(filter) {
    this.filter = filter;
    this.#test = makeTest(filter);
    this.shown = this.#test ? this.entries.filter(this.#test) : this.entries.slice();
    this.#schedule();
  }

  /** @param {boolean} paused */
  setPaused(paused) {
    this.paused = paused;
    if (!paused) this.#append(this.#held.splice(0));
    this.#schedule();
  }

  clear() {
    this.entries = [];
    this.shown = [];
    this.#held = [];
    this.dropped = 0;
    this.#open.clear();
    this.#schedule();
  }

  methods() {
    return [...new Set(this.entries.map((entry) => entry.name).filter(Boolean))].sort();
  }

  sessions() {
    return [...new Set(this.entries.flatMap(({ sessionId }) => (sessionId ? [sessionId] : [])))];
  }

  /** @param {bridge.WireEntry[]} entries */
  #append(entries) {
    for (const entry of entries) {
      // After a reconnection the bridge sends its whole buffer again.
      if (entry.n <= this.#last) continue;
      this.#last = entry.n;
      const understood = this.#understand(entry);
      this.entries.push(understood);
      if (!this.#test || this.#test(understood)) this.shown.push(understood);
    }
    if (this.entries.length > MOST_ENTRIES) this.#dropOldest();
  }

  /**
   * Add the fields of the page to an entry, and connect a response with its request.
   *
   * @param {bridge.WireEntry} received
   * @returns {page.WireEntry}
   */
  #understand(received) {
    /** @type {page.WireEntry} */
    const entry = { ...received, name: received.method ?? "", failed: received.kind === "malformed", partner: null };
    const other = entry.direction === "to_agent" ? "from_agent" : "to_agent";
    if (entry.kind === "request") this.#open.set(key(entry.direction, entry.id), entry);
    if (entry.kind !== "response") return entry;
    const request = this.#open.get(key(other, entry.id));
    this.#open.delete(key(other, entry.id));
    entry.failed = isError(entry.line);
    if (!request) return entry;
    entry.partner = request;
    request.partner = entry;
    entry.name ||= request.name;
    entry.sessionId ??= request.sessionId;
    entry.latencyMs ??= entry.time - request.time;
    return entry;
  }

  #dropOldest() {
    const first = this.entries[DROP_AT_ONCE].n;
    this.dropped += DROP_AT_ONCE;
    this.entries = this.entries.slice(DROP_AT_ONCE);
    this.shown = this.shown.filter((entry) => entry.n >= first);
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.dispatchEvent(new Event("change"));
    });
  }
}

/**
 * @param {string} direction
 * @param {acp.RequestId | undefined} id
 */
function key(direction, id) {
  return `${direction} ${JSON.stringify(id)}`;
}

/** @param {string} line */
function isError(line) {
  if (!line.includes('"error"')) return false;
  try {
    return JSON.parse(line).error !== undefined;
  } catch {
    // A truncated line: errors are short, so this is a result that mentions an error.
    return false;
  }
}

/**
 * @typedef {{ text: string, method: string, direction: string, session: string, errorsOnly: boolean }} Filter
 */

/** @type {Readonly<Filter>} */
export const NO_FILTER = Object.freeze({ text: "", method: "", direction: "", session: "", errorsOnly: false });

/**
 * The predicate of a filter, or null if everything passes.
 *
 * @param {Filter} filter
 * @returns {((entry: page.WireEntry) => boolean) | null}
 */
export function makeTest({ text, method, direction, session, errorsOnly }) {
  /** @type {Array<(entry: page.WireEntry) => boolean>} */
  const tests = [];
  const sought = text.trim().toLowerCase();
  if (sought) tests.push((entry) => entry.line.toLowerCase().includes(sought) || entry.name.toLowerCase().includes(sought));
  if (method) tests.push((entry) => entry.name === method);
  if (direction) tests.push((entry) => entry.direction === direction);
  if (session) tests.push((entry) => entry.sessionId === session);
  if (errorsOnly) tests.push((entry) => entry.failed);
  return tests.length === 0 ? null : (entry) => tests.every((test) => test(entry));
}
