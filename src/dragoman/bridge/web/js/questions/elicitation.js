/** A question of the agent that is answered by filling in a form, or by going to another address. */

import { el, fill, icon } from "../page/dom.js";
import { SchemaForm } from "./form.js";
import { cleanText, oneLine, visible } from "../text/safe.js";

/** @type {Record<string, string>} */
const DONE = { accept: "answered", decline: "declined", cancel: "dismissed" };

export class ElicitationCard {
  /** @type {page.ElicitationQuestion} */
  #question;
  /** @type {SchemaForm | null} */
  #form = null;
  #actions = el("div", { class: "question-actions" });

  /**
   * @param {page.ElicitationQuestion} question
   * @param {page.Session} _session
   * @param {page.App} app
   */
  constructor(question, _session, app) {
    this.#question = question;
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
    if (app.readOnly) fill(this.#actions, el("p", { class: "field-hint" }, "Waiting for somebody who may answer."));
  }

  focus() {
    if (this.#form) this.#form.focus();
    else this.element.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Escape") return false;
    this.#answer("cancel");
    return true;
  }

  /** @param {page.Settled} settled */
  settle({ by, result }) {
    this.isSettled = true;
    const done = DONE[result?.action] ?? "settled";
    /** @type {Partial<Record<page.Settled["by"], string>>} */
    const words = {
      viewer: `This was ${done} in another window`,
      timeout: "Nobody answered in time, so it was declined",
      cancel: "The turn was stopped, so this needs no answer any more",
      agent: "The agent took this question back",
    };
    const told = words[by] ?? "This was settled";
    this.element.classList.add("settled");
    for (const control of this.element.querySelectorAll("input, select, textarea")) control.toggleAttribute("disabled", true);
    fill(this.#actions, el("p", { class: "question-settled", role: "status" }, icon("check"), `${told}.`));
    return told;
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
        "The address it names is none that this page opens: ",
        visible(address),
      );
    }
    const open = () => {
      window.open(url.href, "_blank", "noopener,noreferrer");
      this.#answer("accept");
    };
    this.#buttons(
      el(
        "button",
        { type: "button", class: "button button-primary", onclick: open },
        icon("external"),
        `Open ${url.host}`,
      ),
    );
    const host = el("strong", {}, url.host);
    const odd =
      /(^|\.)xn--/.test(url.hostname) &&
      el("p", { class: "field-error" }, "The name has letters that can look like others: read it with care.");
    const plain =
      url.protocol === "http:" && el("p", { class: "field-hint" }, "The connection to it is not encrypted.");
    return [
      el("p", {}, "It wants you to go to ", host, " in a new tab:"),
      el("pre", { class: "question-command", tabindex: "0" }, url.href),
      odd,
      plain,
    ];
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
