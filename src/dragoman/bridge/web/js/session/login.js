/** Logins at MCP servers, which the agent requests and which end on a page of the server. */

/**
 * The login of a question, or null.
 *
 * @param {page.Question} question
 * @returns {{ server: string } | null}
 */
export function loginOf({ method, params }) {
  if (method !== "elicitation/create" || params.mode !== "url") return null;
  const login = /** @type {any} */ (params._meta)?.["dragoman/oauth"];
  return typeof login?.server === "string" ? login : null;
}
