/** The page behind a link to one question: what is asked, the answers that hold once, and how it was settled. */

import { sentence } from "../connection/failure.js";
import { el, fill, find, icon } from "../page/dom.js";
import { detail, heading } from "../questions/proposal.js";
import { oneLine, visible } from "../text/safe.js";

const LOOK_EVERY_MS = 5_000;

/** @type {Record<string, string>} */
const SETTLED = {
  link: "This question was answered by the link",
  viewer: "This question was answered in the conversation already",
  timeout: "Nobody answered this question in time, so it was refused",
  cancel: "The turn was stopped, so this question needs no answer any more",
  agent: "The agent took this question back",
};

const main = /** @type {HTMLElement} */ (document.getElementById("answer"));
const code = location.hash.slice(1);
/** @type {number | undefined} */
let looking = undefined;
let isAnswering = false;

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
  if (question.state === "open") return ask(question);
  if (question.state === "failed") return say("warning", "This did not work", `${question.words} Your answer may not have arrived.`, true);
  if (question.state === "over") return say("clock", "The time of this link is over", "Ask for another link. The question may still wait in the conversation.");
  if (question.state === "gone") return say("warning", "This question is gone", "The bridge that asked it has ended, and the turn with it. Look at the conversation, and ask again there.");
  if (question.state === "unknown")
    return say("warning", "No question belongs to this link", "It is not whole, or the bridge was started again since. Ask for another link.");
  const choice = question.choice ? `: ${oneLine(question.choice)}` : "";
  const mine = isAnswering && question.by === "link";
  say("check", mine ? `Answered${choice}` : "Already settled", mine ? "The agent goes on. This link is used up." : `${SETTLED[question.by] ?? "This question was settled"}${choice}. This link is used up.`);
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
    el("p", { class: "answer-hint" }, `Your answer counts once, for this question alone. The link works until ${until}.`),
  );
  document.title = `${visible(call.title || "A question")} · Dragoman`;
  // It may be answered elsewhere meanwhile.
  looking = setInterval(async () => {
    const now = await post(null);
    if (!isAnswering && now.state !== "open" && now.state !== "failed") show(now);
  }, LOOK_EVERY_MS);
}

/**
 * @param {string} drawing
 * @param {string} title
 * @param {string} words
 * @param {boolean} again
 */
function say(drawing, title, words, again = false) {
  document.title = `${title} · Dragoman`;
  const retry = again && el("button", { type: "button", class: "button", onclick: begin }, icon("refresh"), "Look again");
  fill(main, el("h1", { class: "question-title", tabindex: "-1" }, icon(drawing), el("span", {}, title)), el("p", { role: "status" }, words), retry);
  find(main, "h1")?.focus();
}

begin();
