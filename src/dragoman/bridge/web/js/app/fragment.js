/** The URL fragment, #agent/session, by which a reload or a link opens the same session. */

export function readPlace() {
  const [agent, session] = location.hash.slice(1).split("/").map(decode);
  return { agent: agent || null, session: session || null };
}

/** @param {{ agent: string | null, session: string | null }} place */
export function writePlace(place) {
  // Replaced, not pushed, so that the back button leaves the page.
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
