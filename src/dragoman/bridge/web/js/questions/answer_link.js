/** The way to have one question answered elsewhere, as on a phone: a link that is good for this question alone. */

import { explain } from "../connection/failure.js";
import { el, icon } from "../page/dom.js";
import { showLink } from "../sidebar/copying.js";

/**
 * @param {page.App} app
 * @param {page.Session} session
 * @param {page.PermissionQuestion} question
 * @param {Partial<page.Call>} call what the question is about, as it is shown here
 */
export function linkButton(app, session, question, call) {
  const { title, name } = app.initialized?.agentInfo ?? {};
  const shown = { call, cwd: session.cwd, title: session.title ?? "", agent: title || name || "" };
  const shape = { type: "button", class: "button question-link", title: "Make a link with which this is answered once, as on a phone" };
  return el("button", { ...shape, onclick: () => makeLink(app, session, question, shown) }, icon("link"), el("span", {}, "Answer elsewhere"));
}

/**
 * @param {page.App} app
 * @param {page.Session} session
 * @param {page.PermissionQuestion} question
 * @param {bridge.ShownQuestion} shown
 */
async function makeLink(app, session, question, shown) {
  try {
    const params = { sessionId: session.id, requestId: question.id, shown };
    const { path, expires } = await app.connection.request("_dragoman/question/link", params);
    const until = new Date(expires).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    await showLink(app, {
      title: "Answer elsewhere",
      words: `Whoever opens this link sees what is asked here, and can answer it once, until ${until}. It gives no other access: open it on another device of yours, or send it to somebody whom you would let decide.`,
      link: new URL(path, document.baseURI).href,
      copied: "The link was copied.",
    });
  } catch (error) {
    app.toast(explain(error), "error");
  }
}
