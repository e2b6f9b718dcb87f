/** The failure of a request, with a message for the user. */

export class Failure extends Error {
  /**
   * @param {string} message
   * @param {number | null} code
   * @param {any} data
   */
  constructor(message, code = null, data = null) {
    super(message);
    this.name = "Failure";
    this.code = code;
    this.data = data;
  }
}

/** The protocol's standard phrases. Those of the second kind are kept before a mere name. */
const PHRASE =
  /^"?(?:(Parse error|Invalid request|Invalid params|Internal error|Authentication required)|(Method not found|Resource not found|Request cancelled))"?(?:[:.]\s*|$)/i;

const LEAST_SENTENCE = 4;

/**
 * The message of an error. The standard phrase is omitted if a sentence follows it.
 *
 * @param {any} error
 * @returns {string}
 */
export function explain(error) {
  const message = String(error?.message ?? error).trim();
  const [start, empty] = PHRASE.exec(message) ?? ["", ""];
  const words = join(message.slice(start.length), detailsOf(error?.data));
  const phrase = start.replace(/[:.\s"]+$/, "").replace(/^"/, "");
  if (!words) return message;
  return phrase && !empty && words.split(/\s+/).length < LEAST_SENTENCE ? `${phrase}: ${words}` : words;
}

/**
 * Join a message and its details without repetition. The message may be truncated or have fewer lines.
 *
 * @param {string} message
 * @param {string} details
 */
function join(message, details) {
  const flat = message.replace(/\s+/g, " ");
  const all = details.replace(/\s+/g, " ");
  if (flat.includes(all)) return message;
  return all.includes(flat.replace(/…$/, "")) ? details : `${message}: ${details}`;
}

/**
 * @param {any} data
 * @returns {string}
 */
function detailsOf(data) {
  if (typeof data === "string") return data.trim();
  const details = data?.problem ?? data?.details ?? data?.message ?? data?.reason ?? data?.error;
  if (typeof details === "string") return details.trim();
  return details && typeof details === "object" ? detailsOf(details) : "";
}

/**
 * Text from a peer as a sentence, with a capital and a full stop.
 *
 * @param {unknown} words
 */
export function sentence(words) {
  if (!words) return "";
  const whole = String(words).trim();
  // A URL, a model or a path is a name and stays unchanged.
  const isName = /^\S*[:/.@_\d]\S/.test(whole.split(" ", 1)[0]);
  const big = isName ? whole : whole.charAt(0).toUpperCase() + whole.slice(1);
  return /[.!?…]$/.test(big) ? big : `${big}.`;
}
