/** The card of a permission request, with the whole command or change and a key for each answer. */

import { closestTo, el, fill, icon } from "../page/dom.js";
import { oneLine, visible } from "../text/safe.js";
import { linkButton } from "./answer_link.js";
import { detail, heading } from "./proposal.js";

// The `_meta` key for the scopes of an "always" option, and for the chosen scope in the answer.
const REMEMBER = "dragoman/remember";

// A key that was meant for something else must not answer a new question.
const ARMED_AFTER_MS = 400;

/** @type {Record<string, string>} */
const STYLES = { allow_once: "button-primary", allow_always: "" };

/** @typedef {Extract<acp.RequestPermissionOutcome, { outcome: "selected" }>} Outcome */

export class PermissionCard {
  /** @type {page.PermissionQuestion} */
  #question;
  /** @type {HTMLButtonElement[]} */
  #buttons = [];
  #actions;
  #settled = new AbortController();

  /**
   * @param {page.PermissionQuestion} question
   * @param {page.Session} session
   * @param {page.App} app
   */
  constructor(question, session, app) {
    this.#question = question;
    this.isSettled = false;
    const { toolCall, options = [] } = question.params;
    const known = session.transcript.tools.get(toolCall?.toolCallId);
    const call = { ...known?.call, ...present(toolCall ?? {}) };
    const title = visible(call.title || "");
    this.words = `The agent asks: ${title || "run a tool"}?`;
    const link = app.offersLinks(options) && linkButton(app, session, question, call, this.#settled.signal);
    this.#actions = el("div", { class: "question-actions" }, this.#options(options, app.readOnly), link);
    this.element = el(
      "section",
      { class: "question permission", role: "alertdialog", "aria-label": this.words, tabindex: "-1" },
      el("h2", { class: "question-title" }, icon("shield"), el("span", {}, heading(call))),
      detail(call, known?.terminals, session.cwd),
      this.#actions,
    );
    setTimeout(() => this.element.classList.add("armed"), ARMED_AFTER_MS);
  }

  /** Focus the allow-once button, or else the reject-once button, but never a longer-lasting one. */
  focus() {
    const button = this.#of("allow_once") ?? this.#of("reject_once") ?? this.element;
    button.focus({ preventScroll: true });
  }

  /**
   * Handle a key. Return whether it was used.
   *
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (closestTo(event, "input, textarea, select")) return false;
    const number = Number(event.key);
    if (number >= 1 && number <= this.#buttons.length) return this.#press(this.#buttons[number - 1]);
    if (event.key === "Escape") return this.#press(this.#of("reject_once") ?? this.#of("reject_always"));
    if (event.key === "Enter" && !closestTo(event, "button, summary, a"))
      return this.#press(this.#of("allow_once"));
    return false;
  }

  /** @param {page.Settled} settled */
  settle({ by, result }) {
    this.isSettled = true;
    this.#settled.abort();
    const name = this.#nameOf(result);
    /** @type {Partial<Record<page.Settled["by"], string>>} */
    const words = {
      link: name ? `Answered with an approval link: ${name}` : "Answered with an approval link",
      viewer: name ? `Answered in another window: ${name}` : "Answered in another window",
      timeout: name ? `Not answered in time: ${name}` : "Not answered in time",
      cancel: "The turn was stopped, so no answer is needed",
      agent: "The agent withdrew this request",
    };
    const outcomeText = words[by] ?? "This request is closed";
    this.element.classList.add("settled");
    fill(this.#actions, el("p", { class: "question-settled", role: "status" }, icon("check"), `${outcomeText}.`));
    return outcomeText;
  }

  /**
   * @param {acp.PermissionOption[]} options
   * @param {boolean} readOnly
   */
  #options(options, readOnly) {
    if (readOnly) return el("p", { class: "field-hint" }, "Waiting for the owner's answer.");
    this.#buttons = options.flatMap(choicesOf).map(({ option, name, outcome }, n) => {
      const key = n < 9 ? el("kbd", { "aria-hidden": "true" }, n + 1) : null;
      const shape = {
        type: "button",
        class: `button ${STYLES[option.kind] ?? "button-danger"}`,
        dataset: { option: option.optionId, kind: option.kind ?? "" },
      };
      const answer = (/** @type {MouseEvent} */ event) => this.#choose(outcome, event);
      return el("button", { ...shape, onclick: answer }, el("span", {}, oneLine(name)), key);
    });
    return this.#buttons;
  }

  /**
   * The first button of a kind.
   *
   * @param {acp.PermissionOptionKind} kind
   */
  #of(kind) {
    return this.#buttons.find((button) => button.dataset.kind === kind);
  }

  /** @param {HTMLButtonElement | undefined} button */
  #press(button) {
    if (!button) return false;
    button.focus({ preventScroll: true });
    button.click();
    return true;
  }

  /**
   * @param {acp.RequestPermissionOutcome} outcome
   * @param {MouseEvent} event
   */
  #choose(outcome, event) {
    const byKey = event.detail === 0;
    if (byKey && !this.element.classList.contains("armed")) return;
    this.#question.answer({ outcome });
  }

  /** @param {any} result */
  #nameOf(result) {
    const { optionId, _meta } = result?.outcome ?? {};
    const all = (this.#question.params.options ?? []).flatMap(choicesOf);
    const choices = all.filter(({ option }) => option.optionId === optionId);
    const chosen = choices.find(({ outcome }) => outcome._meta?.[REMEMBER] === _meta?.[REMEMBER]);
    return oneLine((chosen ?? choices[0])?.name ?? "") || null;
  }
}

/**
 * The choices of an option: one, or one per scope that it offers.
 *
 * @param {acp.PermissionOption} option
 * @returns {Array<{ option: acp.PermissionOption, name: string, outcome: Outcome }>}
 */
function choicesOf(option) {
  /** @type {Outcome} */
  const outcome = { outcome: "selected", optionId: option.optionId };
  const offered = option._meta?.[REMEMBER];
  const scopes = (Array.isArray(offered) ? offered : []).filter((each) => typeof each?.name === "string");
  if (!scopes.length) return [{ option, name: option.name, outcome }];
  return scopes.map(({ scope, name }) => ({ option, name, outcome: { ...outcome, _meta: { [REMEMBER]: scope } } }));
}

/** @param {Record<string, any>} fields */
function present(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}
