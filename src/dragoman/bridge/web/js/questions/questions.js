/** The questions of the agent, above the composer: the oldest first, each a card. */

import { ElicitationCard } from "./elicitation.js";
import { PermissionCard } from "./permission.js";

const CARDS = { "session/request_permission": PermissionCard, "elicitation/create": ElicitationCard };

// Long enough to be read, for a question that somebody else has answered.
const SETTLED_MS = 6_000;

export class Questions {
  #root;
  #app;
  #cards = new Map();
  #session = null;
  #draw = () => this.#redraw();

  constructor(root, app) {
    this.#root = root;
    this.#app = app;
    app.state.addEventListener("session", () => this.#enter(app.state.session));
    document.addEventListener("keydown", (event) => this.#key(event));
    this.#enter(app.state.session);
  }

  #enter(session) {
    if (session === this.#session) return;
    this.#session?.removeEventListener("questions", this.#draw);
    this.#session = session;
    this.#session?.addEventListener("questions", this.#draw);
    this.#redraw();
  }

  #redraw() {
    const questions = this.#session?.questions ?? [];
    for (const [question, card] of this.#cards) if (!questions.includes(question)) this.#remove(question, card);
    for (const question of questions) {
      const card = this.#cards.get(question) ?? this.#add(question);
      if (question.settled && !card.isSettled) this.#settle(question, card);
    }
    this.#root.hidden = this.#cards.size === 0;
  }

  #add(question) {
    const card = new CARDS[question.method](question, this.#session, this.#app);
    this.#cards.set(question, card);
    this.#root.hidden = false;
    this.#root.append(card.element);
    this.#app.announce(card.words);
    // A person who is writing goes on writing; only somebody who is not has the card under the fingers.
    if (!isWriting() && this.#cards.size === 1) card.focus();
    return card;
  }

  #remove(question, card) {
    const hadFocus = card.element.contains(document.activeElement);
    this.#cards.delete(question);
    card.element.remove();
    const next = [...this.#cards.values()].find((one) => !one.isSettled);
    if (hadFocus && next) next.focus();
    else if (hadFocus) this.#app.focusComposer();
  }

  #settle(question, card) {
    const words = card.settle(question.settled);
    this.#app.announce(words);
    const session = this.#session;
    // Whoever is still at it, reads it.
    const leave = () => {
      if (card.element.matches(":hover, :focus-within")) setTimeout(leave, SETTLED_MS);
      else session.dismiss(question);
    };
    setTimeout(leave, SETTLED_MS);
  }

  #key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const card = this.#cardOf(event.target);
    if (card?.key(event)) event.preventDefault();
    // The card may have come under the fingers of somebody who goes on to write: a letter begins a message, or a space
    // in it would press the button that has the focus.
    else if (card && isLetter(event)) this.#app.focusComposer();
  }

  /** The card that keys are for: the one with the focus, or the oldest when the focus is nowhere in particular. */
  #cardOf(target) {
    const open = [...this.#cards.values()].filter((card) => !card.isSettled);
    const own = open.find((card) => card.element.contains(target));
    if (own || target !== document.body) return own;
    return open[0];
  }
}

function isLetter({ key, target }) {
  return /^\p{L}$/u.test(key) && !target.matches?.("input, textarea, select");
}

function isWriting() {
  const at = document.activeElement;
  if (at === null || at === document.body) return false;
  if (at.closest("dialog")) return true;
  if (at.matches("textarea, input")) return at.value !== "" || at.type === "search";
  return at.matches("select");
}
