/** The text of an empty conversation, and the status at its end: waiting, stopped, failed. */

import { el, fill, icon } from "../page/dom.js";
import { explain, sentence } from "../connection/failure.js";
import { welcome } from "../start/welcome.js";
import { withCode } from "../text/inline_code.js";
import { cleanText } from "../text/safe.js";

/** @typedef {{ key: string, make: () => HTMLElement }} Face an element that is rebuilt when its key changes */

/** @type {Record<string, string>} */
const STOPS = {
  max_tokens: "The answer was cut off at the model's output limit.",
  max_turn_requests: "The agent stopped at the limit of steps per turn.",
  refusal: "The agent declined this prompt.",
  cancelled: "Stopped.",
};

/** @type {Record<string, string>} */
const NOTICES = { warning: "Warning", error: "Error" };

/**
 * Fill both elements for the current state of `app`.
 *
 * @param {HTMLElement} stage
 * @param {HTMLElement} tail
 * @param {page.App} app
 */
export function drawStage(stage, tail, app) {
  const { session, connection, agent } = app.state;
  const face = session ? faceOfSession(app, session) : faceOfApp(app, connection, agent);
  stage.hidden = !face;
  change(stage, face);
  change(tail, session?.phase === "ready" ? end(app, session) : null);
}

/**
 * Change an element only if its key changed, so that nothing flickers or is read aloud twice.
 *
 * @param {HTMLElement} element
 * @param {Face | null} wanted
 */
function change(element, wanted) {
  if (element.dataset.key === (wanted?.key ?? "")) return;
  element.dataset.key = wanted?.key ?? "";
  fill(element, wanted?.make());
}

/**
 * @param {page.App} app
 * @param {page.Session} session
 */
function faceOfSession(app, session) {
  if (session.phase === "loading") return waiting("Loading the conversation…");
  if (session.phase === "failed") return broken(app, session);
  if (session.transcript.items.length > 0 || session.running) return null;
  return welcome(app, session.cwd, session);
}

/**
 * @param {page.App} app
 * @param {page.ConnectionState} connection
 * @param {bridge.AgentFacts | null} agent
 */
function faceOfApp(app, connection, agent) {
  if (connection.phase !== "open") {
    return agent?.state === "starting" ? waiting("Starting the agent…") : waiting("Connecting…");
  }
  if (agent?.state === "starting") return waiting("Starting the agent…");
  return welcome(app, app.config.cwd, null);
}

/** @param {string} words */
function waiting(words) {
  return {
    key: words,
    make: () => el("div", { class: "face", role: "status" }, el("span", { class: "spinner" }), el("p", {}, words)),
  };
}

/**
 * @param {page.App} app
 * @param {page.Session} session
 */
function broken(app, session) {
  const again = () => session.attach().catch(() => {});
  const actions = el(
    "div",
    { class: "face-actions" },
    el("button", { type: "button", class: "button", onclick: again }, icon("refresh"), "Try again"),
    !app.readOnly &&
      el(
        "button",
        { type: "button", class: "button button-primary", onclick: () => app.leaveSession() },
        "Start another",
      ),
  );
  const make = () =>
    el(
      "div",
      { class: "face", role: "alert" },
      icon("warning", "face-icon bad"),
      el("h2", {}, "This session cannot be opened"),
      el("p", {}, cleanText(session.problem ?? "")),
      actions,
    );
  return { key: `broken ${session.id} ${session.problem}`, make };
}

/**
 * @param {page.App} app
 * @param {page.Session} session
 */
function end(app, session) {
  const { facts } = session;
  if (session.stopping) return { key: "stopping", make: () => working("Stopping…") };
  if (session.running) {
    if (session.questions.some((question) => !question.settled)) return { key: "asking", make: () => waitingForYou(app) };
    return { key: "working", make: () => working("Working…") };
  }
  if (facts.state === "gone") {
    const why = facts.error
      ? explain(facts.error)
      : "The agent no longer has this session, so it is read-only.";
    return { key: `gone ${why}`, make: () => note("warning", cleanText(why), "bad") };
  }
  const { error, archived, parent } = facts;
  // The transcript shows failed turns. The rest is about the session.
  if (error && JSON.stringify(error) !== JSON.stringify(session.failure)) {
    return { key: `error ${JSON.stringify(error)}`, make: () => failureNote(error, { role: "alert" }) };
  }
  if (parent !== undefined) return { key: `parent ${parent}`, make: () => subagentNote(app, parent) };
  return archived ? { key: `archived ${app.readOnly}`, make: () => archivedNote(app, session) } : null;
}

/**
 * @param {page.App} app
 * @param {string} parent
 */
function subagentNote(app, parent) {
  const back = () => app.openSession(parent).catch((error) => app.toast(explain(error), "error"));
  return el(
    "div",
    { class: "note" },
    icon("fork"),
    el("span", {}, "A subagent works here for another session."),
    el("button", { type: "button", class: "button note-action", onclick: back }, "Go to that session"),
  );
}

/**
 * @param {page.App} app
 * @param {page.Session} session
 */
function archivedNote(app, session) {
  const back = () => app.unarchiveSession(session.id).catch((error) => app.toast(explain(error), "error"));
  return el(
    "div",
    { class: "note" },
    icon("archive"),
    el("span", {}, "This session is archived."),
    !app.readOnly && el("button", { type: "button", class: "button note-action", onclick: back }, "Unarchive"),
  );
}

/** @param {page.App} app */
function waitingForYou({ readOnly }) {
  return el(
    "div",
    { class: "working" },
    icon("shield"),
    readOnly ? "Waiting for the owner's answer." : "Waiting for your answer.",
  );
}

/** @param {string} words */
function working(words) {
  return el("div", { class: "working" }, el("span", { class: "dot dot-busy" }), words);
}

/**
 * @param {string} drawing
 * @param {string} words
 * @param {string} kind
 */
function note(drawing, words, kind = "") {
  return el("div", { class: `note ${kind}`.trim() }, icon(drawing), el("span", {}, words));
}

/**
 * A note of the agent about the conversation.
 *
 * @param {page.NoticeItem} notice
 */
export function noticeNote({ severity, title, description }) {
  const more = description && el("p", { class: "notice-detail" }, withCode(description));
  const drawing = severity === "warning" || severity === "error" ? "warning" : "info";
  const kind = { warning: "warn", error: "bad" }[severity] ?? "";
  return el("div", { class: `note notice ${kind}`.trim(), "aria-label": NOTICES[severity] ?? "Notice", role: "note" }, icon(drawing), el("div", {}, el("p", {}, withCode(title)), more));
}

/**
 * The note for a turn that did not end normally.
 *
 * @param {page.EndItem} end
 */
export function endNote({ error, stopReason }) {
  if (error) return failureNote(error);
  const words = STOPS[stopReason ?? ""] ?? `The agent stopped: ${cleanText(stopReason ?? "no reason given")}.`;
  return note(stopReason === "cancelled" ? "stop" : "warning", words);
}

/**
 * The note for a failed turn.
 *
 * @param {acp.Error} error
 * @param {Record<string, any>} attributes
 */
export function failureNote(error, attributes = {}) {
  const stderr = error.data?.stderr;
  const more =
    typeof stderr === "string" &&
    stderr &&
    el("details", { class: "stderr" }, el("summary", {}, "Agent output"), el("pre", { tabindex: "0" }, cleanText(stderr)));
  return el(
    "div",
    { class: "note bad", ...attributes },
    icon("warning"),
    el("div", {}, el("p", {}, withCode(sentence(explain(error)))), more),
  );
}
