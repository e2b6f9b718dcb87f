/** The dialogs that create a read-only link to one session or all, and that list and revoke links. */

import { el, fill, icon } from "../page/dom.js";
import { visible } from "../text/safe.js";
import { showLink } from "./copying.js";
import { ask, field } from "./dialog.js";
import { titleOf } from "./row.js";

const LIVES = [["1", "1 hour"], ["24", "1 day"], ["168", "7 days"], ["720", "30 days"]];

/**
 * Ask for the scope and duration of a share, then show the link.
 *
 * @param {page.App} app
 * @param {bridge.SessionFacts} facts
 */
export async function share(app, facts) {
  const what = el("select", { class: "input" },
    el("option", { value: "one" }, `This session: ${titleOf(facts)}`), el("option", { value: "all" }, "All sessions of this bridge, including future ones"));
  const life = el("select", { class: "input" }, LIVES.map(([hours, words]) => el("option", { value: hours }, words)));
  life.value = "24";
  const shares = new ShareList();
  const made = await ask({
    title: "Read-only link",
    body: [
      el("p", { class: "dialog-words" }, "One person can open this link and read the chosen sessions, including later updates. They cannot change anything."),
      field("Access to", what), field("Valid for", life), shares.element,
    ],
    action: "Create a link",
    submit: () => makeShare(app, facts, { all: what.value === "all", hours: Number(life.value) }),
  });
  if (made === null) return;
  const link = new URL(made.path, document.baseURI);
  if (made.session !== null) link.hash = [app.agentName ?? "", made.session].map(encodeURIComponent).join("/");
  await showLink(app, {
    title: "Read-only link",
    words: `The link works once, within a day. Access ends ${moment(made.expires)}, or when you revoke it.`,
    link: link.href,
    copied: "The link was copied.",
  });
}

/**
 * @param {page.App} app
 * @param {bridge.SessionFacts} facts
 * @param {{ all: boolean, hours: number }} chosen
 * @returns {Promise<bridge.ShareFacts & { path: string }>}
 */
function makeShare(app, facts, { all, hours }) {
  const one = { agent: app.agentName, session: facts.sessionId, title: titleOf(facts) };
  return askBridge("./shares", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(all ? { hours } : { ...one, hours }) });
}

/** The list of shares, each with a button that revokes it. */
class ShareList {
  constructor() {
    this.list = el("ul", { class: "share-list" });
    this.element = el("section", { class: "field", "aria-label": "Active links", hidden: true }, el("span", { class: "field-label" }, "Active links"), this.list);
    this.load();
  }

  async load() {
    const { shares } = await askBridge("./shares").catch(() => ({ shares: [] }));
    this.element.hidden = shares.length === 0;
    fill(this.list, shares.map((/** @type {bridge.ShareFacts} */ one) => this.#row(one)));
  }

  /** @param {bridge.ShareFacts} one */
  #row(one) {
    const name = one.session === null ? "All sessions" : visible(one.title) || "A session";
    const withdraw = el("button", { type: "button", class: "button", "aria-label": `Revoke ${name}` }, "Revoke");
    withdraw.addEventListener("click", () => this.#withdraw(one, withdraw));
    return el("li", { class: "share-item" }, icon("link"),
      el("span", { class: "share-words" }, el("strong", { dir: "auto" }, name),
        el("span", { class: "share-until" }, `${one.opened ? "opened" : "not opened yet"} · until ${moment(one.expires)}`)),
      withdraw);
  }

  /**
   * @param {bridge.ShareFacts} one
   * @param {HTMLButtonElement} button
   */
  async #withdraw(one, button) {
    button.disabled = true;
    await askBridge(`./shares/${encodeURIComponent(one.id)}`, { method: "DELETE" }).catch(() => {});
    await this.load();
  }
}

/**
 * @param {string} path
 * @param {RequestInit} options
 * @returns {Promise<any>}
 */
export async function askBridge(path, options = {}) {
  const response = await fetch(path, { cache: "no-store", ...options }).catch(() => null);
  if (!response) throw new Error("The bridge cannot be reached. Try again.");
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(String(answer.error ?? `The bridge answered with ${response.status}.`).slice(0, 300));
  return answer;
}

/** @param {number} ms */
function moment(ms) {
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

