/** What went wrong with a request, in words for a person. */

export class Failure extends Error {
  constructor(message, code = null, data = null) {
    super(message);
    this.name = "Failure";
    this.code = code;
    this.data = data;
  }
}

/** One sentence for any error; the peer's own details are better than its general message. */
export function explain(error) {
  const data = error?.data;
  const details = typeof data === "string" ? data : (data?.problem ?? data?.details ?? data?.reason ?? data?.message);
  const message = String(error?.message ?? error);
  if (typeof details === "string" && details && !message.includes(details)) return `${message}: ${details}`;
  return message;
}

/** Words of a peer as a sentence of ours. */
export function sentence(words) {
  if (!words) return "";
  const whole = String(words).trim();
  const big = whole.charAt(0).toUpperCase() + whole.slice(1);
  return /[.!?…]$/.test(big) ? big : `${big}.`;
}
