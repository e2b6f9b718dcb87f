/** The fragment of the address, #agent/session: a reload or a link comes back to the same session. */

export function readPlace() {
  const [agent, session] = location.hash.slice(1).split("/").map(decode);
  return { agent: agent || null, session: session || null };
}

/** @param {{ agent: string | null, session: string | null }} place */
export function writePlace({ agent, session }) {
  const fragment = [agent ?? "", session ?? ""].map(encodeURIComponent).join("/");
  // Replaced, not pushed: going back should leave the page and not walk through sessions.
  history.replaceState(null, "", `#${fragment}`);
}

/** @param {any} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}
