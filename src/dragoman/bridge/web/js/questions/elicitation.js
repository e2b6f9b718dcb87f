/** The card of an elicitation: a form to fill in, or a page to open. */

import { el, fill, icon } from "../page/dom.js";
import { loginOf } from "../session/login.js";
import { SchemaForm } from "./form.js";
import { cleanText, oneLine, visible } from "../text/safe.js";

/** @type {Record<string, string>} */
const DONE = { accept: "answered", decline: "declined", cancel: "dismissed" };

export class ElicitationCard {
  /** @type {page.ElicitationQuestion} */
  #question;
  /** @type {page.Session} */
  #session;
  #login;
  /** @type {SchemaForm | null} */
  #form = null;
  #actions = el("div", { class: "question-actions" });

  /**
   * @param {page.ElicitationQuestion} question
   * @param {page.Session} session
   * @param {page.App} app
   */
  constructor(question, session, app) {
    this.#question = question;
    this.#session = session;
    this.#login = loginOf(question);
    this.isSettled = false;
    const message = visible(question.params.message ?? "", { lines: true });
    this.words = `The agent asks: ${message}`;
    const info = app.initialized?.agentInfo;
    const asker = el("p", { class: "question-asker" }, `${oneLine(info?.title || info?.name || "The agent")} asks`);
    const heading = el("h2", { class: "question-title" }, icon("help"), el("span", {}, message));
    const { params } = question;
    const body = params.mode === "url" ? this.#address(params.url) : this.#fields(params.requestedSchema);
    const form = el(
      "form",
      { class: "question-form", novalidate: true, onsubmit: (event) => this.#submit(event) },
      asker,
      heading,
      el("div", { class: "question-detail" }, body),
      this.#actions,
    );
    const shape = { class: "question elicitation", role: "dialog", "aria-label": this.words, tabindex: "-1" };
    this.element = el("section", shape, form);
    if (app.readOnly) fill(this.#actions, el("p", { class: "field-hint" }, "Waiting for the owner's answer."));
  }

  focus() {
    if (this.#form) this.#form.focus();
    else this.element.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Escape") return false;
    if (this.#question.waiting) this.#session.dismiss(this.#question);
    else this.#answer("cancel");
    return true;
  }

  /** Show that the user is on another page, until the agent reports the result. */
  wait() {
    if (this.element.classList.contains("waiting") || this.#question.params.mode !== "url") return;
    this.element.classList.add("waiting");
    const url = new URL(this.#question.params.url);
    const words = `Waiting for you to finish at ${url.host}…`;
    fill(
      this.#actions,
      el("p", { class: "question-waiting", role: "status" }, words),
      link(url, "Open again", "button"),
      this.#dismissButton(),
    );
  }

  /** @param {page.Settled} settled */
  settle({ by, result }) {
    this.isSettled = true;
    this.element.classList.remove("waiting");
    if (by === "login") return this.#showLogin(result);
    const done = DONE[result?.action] ?? "settled";
    /** @type {Partial<Record<page.Settled["by"], string>>} */
    const words = {
      viewer: `This was ${done} in another window`,
      timeout: "No answer came in time, so it was declined",
      cancel: "The turn was stopped, so no answer is needed",
      agent: "The agent withdrew this request",
    };
    const outcomeText = words[by] ?? "This request is closed";
    this.element.classList.add("settled");
    for (const control of this.element.querySelectorAll("input, select, textarea")) control.toggleAttribute("disabled", true);
    fill(this.#actions, el("p", { class: "question-settled", role: "status" }, icon("check"), `${outcomeText}.`));
    return outcomeText;
  }

  /** @param {{ server: string, outcome: string, reason?: string }} login */
  #showLogin({ server, outcome, reason }) {
    const isDone = outcome === "done";
    const name = oneLine(server);
    const outcomeText = isDone ? `You are logged in to ${name}` : `The login at ${name} failed: ${oneLine(reason ?? "no reason was given")}`;
    this.element.classList.add("settled");
    fill(this.#actions, el("p", { class: "question-settled", role: "status" }, icon(isDone ? "check" : "warning"), `${outcomeText}.`));
    return outcomeText;
  }

  /** @param {acp.ElicitationSchema} requestedSchema */
  #fields(requestedSchema) {
    this.#form = new SchemaForm(requestedSchema);
    this.#buttons(el("button", { type: "submit", class: "button button-primary" }, "Send"));
    return [
      requestedSchema?.description && el("p", { class: "field-hint" }, cleanText(requestedSchema.description)),
      this.#form.element,
    ];
  }

  /** @param {string} address */
  #address(address) {
    const url = URL.parse?.(address) ?? null;
    if (!url || !["http:", "https:"].includes(url.protocol)) {
      this.#buttons();
      return el(
        "p",
        { class: "field-error" },
        "This page does not open addresses of this kind: ",
        visible(address),
      );
    }
    const words = this.#login ? `Log in at ${url.host}` : `Open ${url.host}`;
    this.#buttons(link(url, words, "button button-primary", () => this.#answer("accept")));
    const host = el("strong", {}, url.host);
    const odd =
      /(^|\.)xn--/.test(url.hostname) &&
      el("p", { class: "field-error" }, "The name contains letters that look like others. Check it carefully.");
    const plain =
      url.protocol === "http:" && el("p", { class: "field-hint" }, "The connection is not encrypted.");
    if (this.#login)
      return [
        el("p", {}, "Continue at ", host, ", which opens in a new tab. Its tools are then available in this session."),
        odd,
        plain,
        el("details", {}, el("summary", {}, "Full address"), el("pre", { class: "question-command", tabindex: "0" }, url.href)),
      ];
    return [
      el("p", {}, "It asks you to open ", host, " in a new tab:"),
      el("pre", { class: "question-command", tabindex: "0" }, url.href),
      odd,
      plain,
    ];
  }

  #dismissButton() {
    return el("button", { type: "button", class: "button", onclick: () => this.#session.dismiss(this.#question) }, "Dismiss");
  }

  /** @param {HTMLElement | null} first */
  #buttons(first = null) {
    const decline = el(
      "button",
      { type: "button", class: "button", onclick: () => this.#answer("decline") },
      "Decline",
    );
    const cancel = el(
      "button",
      { type: "button", class: "button", onclick: () => this.#answer("cancel") },
      "Dismiss",
      el("kbd", { "aria-hidden": "true" }, "Esc"),
    );
    fill(this.#actions, first, decline, cancel);
  }

  /** @param {Event} event */
  #submit(event) {
    event.preventDefault();
    const content = this.#form?.read() ?? null;
    if (content !== null) this.#answer("accept", content);
  }

  /**
   * @param {"accept" | "decline" | "cancel"} action
   * @param {Record<string, acp.ElicitationContentValue>} [content]
   */
  #answer(action, content) {
    this.#question.answer(content === undefined ? { action } : { action, content });
  }
}

/**
 * A link that opens in a new tab without a referrer.
 *
 * @param {URL} url
 * @param {string} words
 * @param {string} look
 * @param {() => void} [opened]
 */
function link(url, words, look, opened) {
  const shape = { class: look, href: url.href, target: "_blank", rel: "noopener noreferrer" };
  // Answer after the click, because the answer removes the link.
  const onclick = opened && (() => setTimeout(opened, 0));
  return el("a", { ...shape, ...(onclick && { onclick }) }, icon("external"), words);
}
