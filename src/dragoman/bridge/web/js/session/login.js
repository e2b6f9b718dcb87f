/** Logins at MCP servers, which the agent asks for and which end on a page of the server. */

/**
 * The login that a question is about, or null.
 *
 * @param {page.Question} question
 * @returns {{ server: string } | null}
 */
export function loginOf({ method, params }) {
  if (method !== "elicitation/create" || params.mode !== "url") return null;
  const login = /** @type {any} */ (params._meta)?.["dragoman/oauth"];
  return typeof login?.server === "string" ? login : null;
}
