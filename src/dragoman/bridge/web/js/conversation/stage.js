/** The words in place of a conversation that is empty, and those at its end: waiting, stopped, failed. */

import { el, fill, icon } from "../page/dom.js";
import { explain, sentence } from "../connection/failure.js";
import { cleanText, oneLine, visible } from "../text/safe.js";

/** @typedef {{ key: string, make: () => HTMLElement }} Face what is drawn anew when its key is another */

/** @type {Record<string, string>} */
const STOPS = {
  max_tokens: "The answer was cut: it reached the most the model may write.",
  max_turn_requests: "The agent stopped: it reached the most steps of a turn.",
  refusal: "The agent refused to go on with this.",
  cancelled: "Stopped.",
};

/**
 * Fill both for the state that `app` is in now.
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
 * Change an element only if its words change, so that nothing flickers and nothing is read aloud twice.
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
  return { key: `empty ${session.cwd} ${app.readOnly}`, make: () => welcome(app, session.cwd) };
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
  return { key: `welcome ${app.config.cwd} ${app.readOnly}`, make: () => welcome(app, app.config.cwd) };
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
 * @param {string} cwd
 */
function welcome(app, cwd) {
  const info = app.initialized?.agentInfo;
  const name = oneLine(info?.title || info?.name || "the agent");
  const where = el("p", { class: "face-where" }, "in ", el("code", {}, visible(cwd)));
  if (app.readOnly) {
    return el(
      "div",
      { class: "face" },
      icon("eye", "face-icon"),
      el("h2", {}, "You are reading along"),
      el("p", {}, "Choose a session from the list."),
    );
  }
  return el(
    "div",
    { class: "face" },
    mark(),
    el("h2", {}, `Talk with ${name}`),
    where,
    el("p", { class: "face-hint" }, hint()),
  );
}

function hint() {
  return [
    "Type ",
    el("kbd", {}, "/"),
    " for commands, ",
    el("kbd", {}, "@"),
    " and a path to mention a file.",
    el("span", { class: "face-keys" }, " All keys are under ", el("kbd", {}, "?"), " above."),
  ];
}

/** Two voices and what lies between them. */
function mark() {
  return el("span", { class: "mark", "aria-hidden": "true" }, el("span", {}), el("span", {}));
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
      : "The agent no longer has this session; it can be read, not continued.";
    return { key: `gone ${why}`, make: () => note("warning", cleanText(why), "bad") };
  }
  const { failure } = session;
  if (failure) return { key: `error ${JSON.stringify(failure)}`, make: () => failureNote(failure, { role: "alert" }) };
  const words = STOPS[facts.stopReason ?? ""];
  return words ? { key: words, make: () => note(facts.stopReason === "cancelled" ? "stop" : "warning", words) } : null;
}

/** @param {page.App} app */
function waitingForYou({ readOnly }) {
  return el(
    "div",
    { class: "working" },
    icon("shield"),
    readOnly ? "Waiting for somebody's answer." : "Waiting for your answer.",
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
  const more = description && el("p", { class: "notice-detail" }, cleanText(description));
  const drawing = severity === "warning" || severity === "error" ? "warning" : "info";
  return el("div", { class: "note notice" }, icon(drawing), el("div", {}, el("p", {}, cleanText(title)), more));
}

/**
 * How a turn failed.
 *
 * @param {acp.Error} error
 * @param {Record<string, any>} attributes
 */
export function failureNote(error, attributes = {}) {
  const stderr = error.data?.stderr;
  const more =
    typeof stderr === "string" &&
    stderr &&
    el("details", { class: "stderr" }, el("summary", {}, "What it wrote"), el("pre", { tabindex: "0" }, cleanText(stderr)));
  return el(
    "div",
    { class: "note bad", ...attributes },
    icon("warning"),
    el("div", {}, el("p", {}, cleanText(sentence(explain(error)))), more),
  );
}
