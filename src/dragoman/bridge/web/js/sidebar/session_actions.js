/** The actions on a session besides opening it: share it to read, delete it. */

import { ask, field } from "./dialog.js";
import { el } from "../page/dom.js";
import { explain } from "../connection/failure.js";
import { titleOf } from "./row.js";

/**
 * Show a link with which another person can read along.
 *
 * @param {page.App} app
 * @param {bridge.SessionFacts} facts
 */
export async function showShareLink(app, facts) {
  let link;
  try {
    link = await makeLink(app, facts.sessionId);
  } catch (error) {
    app.toast(explain(error), "error");
    return;
  }
  const input = el("input", { class: "input share-link", readonly: true, value: link, spellcheck: "false" });
  input.addEventListener("focus", () => input.select());
  await ask({
    title: "Share to read",
    body: [
      el("p", { class: "dialog-words" }, "A person who opens this link can read all sessions, beginning with ",
        el("strong", { class: "dialog-name", dir: "auto" }, titleOf(facts)), ", and can change nothing. It works once, and not for long."),
      field("Link", input),
    ],
    action: "Copy",
    submit: () => copy(app, input),
  });
}

/**
 * @param {page.App} app
 * @param {string} id
 */
async function makeLink(app, id) {
  const response = await fetch("./link", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ role: "reader" }),
  }).catch(() => null);
  if (!response) throw new Error("The bridge cannot be reached, so there is no link.");
  if (!response.ok) throw new Error(`The bridge makes no link: ${(await response.text()).slice(0, 300)}`);
  const { path } = await response.json();
  const link = new URL(path, document.baseURI);
  link.hash = [app.agentName ?? "", id].map(encodeURIComponent).join("/");
  return link.href;
}

/**
 * @param {page.App} app
 * @param {HTMLInputElement} input
 */
async function copy(app, input) {
  try {
    await navigator.clipboard.writeText(input.value);
  } catch {
    input.select();
    throw new Error("The browser does not let the page copy. The link is marked: copy it yourself.");
  }
  app.toast("The link was copied.", "info");
}

/**
 * Delete a session after the person has seen which one it is; resolves to true when it was deleted.
 *
 * @param {page.App} app
 * @param {bridge.SessionFacts} facts
 */
export async function confirmDelete(app, facts) {
  const words = facts.state === "running" ? " It is running and will be stopped." : "";
  const done = await ask({
    title: "Delete this session?",
    body: el("p", {}, el("strong", { class: "dialog-name", dir: "auto" }, titleOf(facts)), ` will be gone for everybody, with all that was said in it.${words}`),
    action: "Delete",
    danger: true,
    submit: () => remove(app, facts.sessionId),
  });
  if (done) app.announce("The session was deleted.");
  return done === true;
}

/**
 * @param {page.App} app
 * @param {string} id
 */
async function remove(app, id) {
  try {
    await app.deleteSession(id);
    return true;
  } catch (error) {
    throw new Error(explain(error), { cause: error });
  }
}
