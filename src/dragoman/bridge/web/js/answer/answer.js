/** The page of an answer link: the question, its allow-once and reject-once answers, and the outcome. */

import { sentence } from "../connection/failure.js";
import { el, fill, find, icon } from "../page/dom.js";
import { detail, heading } from "../questions/proposal.js";
import { oneLine, visible } from "../text/safe.js";

const LOOK_EVERY_MS = 1_000;

/** @type {Record<string, string>} */
const SETTLED = {
  link: "This request was answered with this link",
  viewer: "This request was already answered in the conversation",
  timeout: "No answer came in time, so the request was denied",
  cancel: "The turn was stopped, so no answer is needed",
  agent: "The agent withdrew this request",
};

const main = /** @type {HTMLElement} */ (document.getElementById("answer"));
const code = location.hash.slice(1);
/** @type {number | undefined} */
let looking = undefined;
let isAnswering = false;
let isLooking = false;

/**
 * @param {string | null} option
 * @returns {Promise<bridge.LinkedQuestion>}
 */
async function post(option) {
  const body = JSON.stringify(option === null ? { code } : { code, option });
  const response = await fetch("./answer", { method: "POST", headers: { "content-type": "application/json" }, body }).catch(() => null);
  if (response === null) return { state: "failed", words: "The bridge cannot be reached." };
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 404) return { state: "unknown" };
  return { state: "failed", words: sentence(oneLine(answer.error ?? `The bridge answered with ${response.status}`)) };
}

async function begin() {
  show(code === "" ? { state: "unknown" } : await post(null));
}

/** @param {bridge.LinkedQuestion} question */
function show(question) {
  clearInterval(looking);
  looking = undefined;
  if (question.state === "open") return ask(question);
  if (question.state === "failed") return say("warning", "That did not work", `${question.words} Your answer may not have arrived.`, true);
  if (question.state === "over") return say("clock", "This link has expired", "Ask for a new link. The request may still be open in the conversation.");
  if (question.state === "gone") return say("warning", "This request no longer exists", "The bridge has stopped, and the turn ended with it. Open the conversation and send the prompt again.");
  if (question.state === "unknown")
    return say("warning", "This link is not valid", "The link is incomplete, or the bridge was restarted since it was created. Ask for a new link.");
  const choice = question.choice ? `: ${oneLine(question.choice)}` : "";
  const mine = isAnswering && question.by === "link";
  say("check", mine ? `Answered${choice}` : "This request is closed", mine ? "The agent continues. This link cannot be used again." : `${SETTLED[question.by] ?? "It needs no answer"}${choice}. This link cannot be used again.`);
}

/** @param {Extract<bridge.LinkedQuestion, { state: "open" }>} question */
function ask({ agent, shown, options, expires }) {
  const { call = {}, cwd = "", title = "" } = shown;
  const until = new Date(expires).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const status = el("p", { class: "answer-status", role: "status" });
  const buttons = options.map(({ optionId, name, kind }) =>
    el("button", { type: "button", class: `button ${kind === "allow_once" ? "button-primary" : "button-danger"}`, onclick: () => choose(optionId) }, oneLine(name)),
  );
  const choose = async (/** @type {string} */ optionId) => {
    for (const button of buttons) button.disabled = true;
    status.textContent = "Sending…";
    isAnswering = true;
    show(await post(optionId));
  };
  fill(
    main,
    el("p", { class: "question-asker" }, `${oneLine(shown.agent || agent)} asks${title ? `, in “${oneLine(title)}”` : ""}`),
    el("h1", { class: "question-title" }, icon("shield"), el("span", {}, heading(call))),
    cwd && el("p", { class: "answer-where" }, visible(cwd)),
    detail(call, undefined, cwd),
    el("div", { class: "question-actions" }, buttons),
    status,
    el("p", { class: "answer-hint" }, `Your answer counts once, for this request only. The link expires ${until}.`),
  );
  document.title = `${visible(call.title || "Permission request")} · Dragoman`;
  looking = setInterval(look, LOOK_EVERY_MS);
}

/** Check whether the question was answered elsewhere. */
async function look() {
  if (looking === undefined || isLooking || document.visibilityState !== "visible") return;
  isLooking = true;
  const now = await post(null);
  isLooking = false;
  if (!isAnswering && now.state !== "open" && now.state !== "failed") show(now);
}

/**
 * @param {string} drawing
 * @param {string} title
 * @param {string} words
 * @param {boolean} again
 */
function say(drawing, title, words, again = false) {
  document.title = `${title} · Dragoman`;
  const retry = again && el("button", { type: "button", class: "button", onclick: begin }, icon("refresh"), "Check again");
  fill(main, el("h1", { class: "question-title", tabindex: "-1" }, icon(drawing), el("span", {}, title)), el("p", { role: "status" }, words), retry);
  find(main, "h1")?.focus();
}

// Browsers stop the timers of hidden pages.
document.addEventListener("visibilitychange", look);
begin();
