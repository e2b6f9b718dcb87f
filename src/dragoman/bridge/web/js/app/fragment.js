/** The fragment of the address, #agent/session: a reload or a link comes back to the same session. */

export function readPlace() {
  const [agent, session] = location.hash.slice(1).split("/").map(decode);
  return { agent: agent || null, session: session || null };
}

/** @param {{ agent: string | null, session: string | null }} place */
export function writePlace(place) {
  // Replaced, not pushed: going back should leave the page and not walk through sessions.
  history.replaceState(null, "", fragmentOf(place));
}

/** @param {{ agent: string | null, session: string | null }} place */
export function fragmentOf({ agent, session }) {
  return `#${[agent ?? "", session ?? ""].map(encodeURIComponent).join("/")}`;
}

/** @param {any} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}
