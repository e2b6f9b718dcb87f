/** Session actions with a dialog: export one session, delete one or many. */

import { ask, field } from "./dialog.js";
import { el } from "../page/dom.js";
import { explain } from "../connection/failure.js";
import { titleOf } from "./row.js";

const FORMATS = [["html", "HTML: one file to read or print"], ["markdown", "Markdown"], ["json", "JSON: every update, for programs"]];
const MOST_NAMED = 6;
const TOLD_EVERY = 25;

/**
 * Save a session as a file.
 *
 * @param {page.App} app
 * @param {bridge.SessionFacts} facts
 */
export async function exportSession(app, facts) {
  const format = el("select", { class: "input" }, FORMATS.map(([value, words]) => el("option", { value }, words)));
  await ask({
    title: "Export",
    body: [el("p", { class: "dialog-words" }, el("strong", { class: "dialog-name", dir: "auto" }, titleOf(facts))), field("Format", format)],
    action: "Export",
    submit: async () => {
      const query = new URLSearchParams({ session: facts.sessionId, format: format.value });
      const response = await fetch(`./export/${encodeURIComponent(app.agentName ?? "")}?${query}`, { cache: "no-store" }).catch(() => null);
      if (!response) throw new Error("The bridge cannot be reached. Try again.");
      if (!response.ok) throw new Error(String((await response.json().catch(() => ({}))).error ?? "The bridge could not export the session."));
      save(await response.blob(), nameOf(response, format.value));
    },
  });
}

/**
 * @param {Response} response
 * @param {string} format
 */
function nameOf(response, format) {
  const given = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "");
  return given?.[1] ?? `session.${format}`;
}

/**
 * @param {Blob} content
 * @param {string} name
 */
function save(content, name) {
  const url = URL.createObjectURL(content);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * Delete several sessions after a confirmation that lists them. Resolves to whether the user agreed.
 *
 * @param {page.App} app
 * @param {bridge.SessionFacts[]} chosen
 */
export async function confirmDeleteMany(app, chosen) {
  const running = chosen.filter((facts) => facts.state === "running").length;
  const words = running === 0 ? "" : running === 1 ? " One of them is running and will be stopped." : ` ${running} of them are running and will be stopped.`;
  const more = chosen.length - MOST_NAMED;
  const progress = el("p", { class: "dialog-words", role: "status" });
  const done = await ask({
    title: `Delete ${chosen.length} sessions?`,
    body: [
      el("ul", { class: "delete-names", tabindex: "0", "aria-label": "Sessions to delete" }, chosen.slice(0, MOST_NAMED).map((facts) => el("li", { dir: "auto" }, titleOf(facts)))),
      el("p", {}, `${more > 0 ? `These and ${more} more` : "They"} will be deleted for everyone, with their whole history.${words}`),
      progress,
    ],
    action: "Delete",
    danger: true,
    submit: () => removeMany(app, chosen, progress),
  });
  return done === true;
}

/**
 * @param {page.App} app
 * @param {bridge.SessionFacts[]} chosen
 * @param {HTMLElement} progress
 */
async function removeMany(app, chosen, progress) {
  let failed = 0;
  /** @type {unknown} */
  let problem = null;
  for (const [number, { sessionId }] of chosen.entries()) {
    if (number % TOLD_EVERY === 0 && chosen.length > TOLD_EVERY) progress.textContent = `${number} of ${chosen.length} deleted.`;
    // If the user closes the dialog, the remaining sessions are kept.
    if (!progress.isConnected) return false;
    try {
      await app.deleteSession(sessionId);
    } catch (error) {
      failed += 1;
      problem = error;
    }
  }
  if (failed > 0) app.toast(`${failed} of ${chosen.length} sessions could not be deleted. ${explain(problem)}`, "error");
  else app.announce(`${chosen.length} sessions were deleted.`);
  return true;
}

/**
 * Delete a session after a confirmation that names it. Resolves to true if it was deleted.
 *
 * @param {page.App} app
 * @param {bridge.SessionFacts} facts
 */
export async function confirmDelete(app, facts) {
  const words = facts.state === "running" ? " It is running and will be stopped." : "";
  const done = await ask({
    title: "Delete this session?",
    body: el("p", {}, el("strong", { class: "dialog-name", dir: "auto" }, titleOf(facts)), ` will be deleted for everyone, with its whole history.${words}`),
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
