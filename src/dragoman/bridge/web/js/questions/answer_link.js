/** The answer link of a question, for example for a phone. It is valid for this question only. */

import { explain } from "../connection/failure.js";
import { el, icon } from "../page/dom.js";
import { showLink } from "../sidebar/copying.js";

/**
 * @param {page.App} app
 * @param {page.Session} session
 * @param {page.PermissionQuestion} question
 * @param {Partial<page.Call>} call the tool call of the question, as shown here
 * @param {AbortSignal} settled aborted once the question is settled
 */
export function linkButton(app, session, question, call, settled) {
  const { title, name } = app.initialized?.agentInfo ?? {};
  const shown = { call, cwd: session.cwd, title: session.title ?? "", agent: title || name || "" };
  const shape = { type: "button", class: "button question-link", title: "Create an approval link, for example for your phone" };
  return el("button", { ...shape, onclick: () => makeLink(app, session, question, shown, settled) }, icon("link"), el("span", {}, "Approval link"));
}

/**
 * @param {page.App} app
 * @param {page.Session} session
 * @param {page.PermissionQuestion} question
 * @param {bridge.ShownQuestion} shown
 * @param {AbortSignal} signal
 */
async function makeLink(app, session, question, shown, signal) {
  try {
    const params = { sessionId: session.id, requestId: question.id, shown };
    const { path, expires } = await app.connection.request("_dragoman/question/link", params);
    const until = new Date(expires).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    await showLink(app, {
      title: "Approval link",
      words: `Anyone with this approval link can see this request and answer it once, until ${until}. It gives no other access. Open it on another device, or send it to someone you trust to decide.`,
      link: new URL(path, document.baseURI).href,
      copied: "The link was copied.",
      signal,
    });
  } catch (error) {
    app.toast(explain(error), "error");
  }
}
