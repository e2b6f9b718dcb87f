/** The agent's questions as cards above the composer, oldest first. */

import { closestTo } from "../page/dom.js";
import { ElicitationCard } from "./elicitation.js";
import { PermissionCard } from "./permission.js";

/**
 * @param {page.Question} question
 * @param {page.Session} session
 * @param {page.App} app
 * @returns {page.Card}
 */
function makeCard(question, session, app) {
  if (question.method === "elicitation/create") return new ElicitationCard(question, session, app);
  return new PermissionCard(question, session, app);
}

// Time to read that another viewer has answered a question.
const SETTLED_MS = 6_000;

export class Questions {
  #root;
  /** @type {page.App} */
  #app;
  /** @type {Map<page.Question, page.Card>} */
  #cards = new Map();
  /** @type {page.Session | null} */
  #session = null;
  #draw = () => this.#redraw();

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#root = root;
    this.#app = app;
    app.state.addEventListener("session", () => this.#enter(app.state.session));
    document.addEventListener("keydown", (event) => this.#key(event));
    this.#enter(app.state.session);
  }

  /** @param {page.Session | null} session */
  #enter(session) {
    if (session === this.#session) return;
    this.#session?.removeEventListener("questions", this.#draw);
    this.#session = session;
    this.#session?.addEventListener("questions", this.#draw);
    this.#redraw();
  }

  #redraw() {
    const session = this.#session;
    for (const [question, card] of this.#cards)
      if (!session?.questions.includes(question)) this.#remove(question, card);
    if (session) this.#show(session);
    this.#root.hidden = this.#cards.size === 0;
  }

  /** @param {page.Session} session */
  #show(session) {
    for (const question of session.questions) {
      const card = this.#cards.get(question) ?? this.#add(question, session);
      if (question.waiting && !question.settled) card.wait?.();
      if (question.settled && !card.isSettled) this.#settle(question, card, question.settled);
    }
  }

  /**
   * @param {page.Question} question
   * @param {page.Session} session
   */
  #add(question, session) {
    const card = makeCard(question, session, this.#app);
    this.#cards.set(question, card);
    this.#root.hidden = false;
    this.#root.append(card.element);
    this.#app.announce(card.words);
    // A card gets the focus only if the user is not writing.
    if (!isWriting() && this.#cards.size === 1) card.focus();
    return card;
  }

  /**
   * @param {page.Question} question
   * @param {page.Card} card
   */
  #remove(question, card) {
    const hadFocus = card.element.contains(document.activeElement);
    this.#cards.delete(question);
    card.element.remove();
    const next = [...this.#cards.values()].find((one) => !one.isSettled);
    if (hadFocus && next) next.focus();
    else if (hadFocus) this.#app.focusComposer();
  }

  /**
   * @param {page.Question} question
   * @param {page.Card} card
   * @param {page.Settled} settled
   */
  #settle(question, card, settled) {
    const words = card.settle(settled);
    this.#app.announce(words);
    const session = this.#session;
    // Keep the card while the user still has the focus on it.
    const leave = () => {
      if (card.element.matches(":hover, :focus-within")) setTimeout(leave, SETTLED_MS);
      else session?.dismiss(question);
    };
    setTimeout(leave, SETTLED_MS);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const card = this.#cardOf(event.target);
    if (card?.key(event)) event.preventDefault();
    // The card may have got the focus just before the user began to write, so a letter goes to the message field.
    // Otherwise the next space would press the focused button.
    else if (card && isLetter(event)) this.#app.focusComposer();
  }

  /**
   * The card that receives keys: the focused one, or the oldest if nothing has the focus.
   *
   * @param {EventTarget | null} target
   */
  #cardOf(target) {
    const open = [...this.#cards.values()].filter((card) => !card.isSettled);
    const own = open.find((card) => target instanceof Node && card.element.contains(target));
    if (own || target !== document.body) return own;
    return open[0];
  }
}

/** @param {KeyboardEvent} event */
function isLetter(event) {
  return /^\p{L}$/u.test(event.key) && !closestTo(event, "input, textarea, select");
}

function isWriting() {
  const at = document.activeElement;
  if (at === null || at === document.body) return false;
  if (at.closest("dialog")) return true;
  if (at instanceof HTMLTextAreaElement || at instanceof HTMLInputElement) return at.value !== "" || at.type === "search";
  return at.matches("select");
}
