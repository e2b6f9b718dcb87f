/** The keys of the page, and the dialog that lists them. */

import { closestTo, el } from "../page/dom.js";

const KEYS = [
  ["?", "Show these keys"],
  ["Enter", "Send the message; while the agent works: into the turn if the agent takes it, else after it"],
  ["Ctrl Enter", "While the agent works: send the message after this turn"],
  ["Shift Enter", "Start a new line"],
  ["Esc", "Stop the agent; reject or dismiss a question; close what is open"],
  ["1 … 9", "Answer a question with that option"],
  ["/", "Go to the message field; there: choose a command"],
  ["@", "In the message field: mention a file"],
  ["↑", "In the empty field: the last message again"],
  ["Alt N", "New session"],
  ["Alt S", "Go to the sessions"],
  ["F2", "In the sessions: rename the chosen one"],
  ["Alt C", "Show or leave the changed files"],
  ["Alt I", "Show or leave the wire inspector"],
];

export function showKeys() {
  const close = el("button", { type: "button", class: "button", autofocus: true }, "Close");
  const rows = KEYS.map(([keys, words]) =>
    el(
      "div",
      { class: "key-row" },
      el(
        "dt",
        {},
        keys.split(" ").map((key) => (key === "…" ? "…" : el("kbd", {}, key))),
      ),
      el("dd", {}, words),
    ),
  );
  const dialog = el(
    "dialog",
    { class: "keys", "aria-labelledby": "keys-title" },
    el("h2", { class: "dialog-title", id: "keys-title" }, "Keys"),
    el("dl", {}, rows),
    el("div", { class: "dialog-actions" }, close),
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * @param {page.App} app
 * @param {{ focusSidebar: () => void, newSession: () => void }} actions
 */
export function listenForKeys(app, { focusSidebar, newSession }) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const action = event.altKey && !event.ctrlKey && !event.metaKey ? withAlt(event) : plain(event);
    if (!action) return;
    event.preventDefault();
    action();
  });

  // By the key's place: with Alt many layouts give another letter.
  /** @param {KeyboardEvent} event */
  const withAlt = ({ code }) =>
    ({
      KeyN: newSession,
      KeyS: focusSidebar,
      KeyC: () => app.show(app.state.view === "review" ? "conversation" : "review"),
      KeyI: () => app.show(app.state.view === "inspector" ? "conversation" : "inspector"),
    })[code];

  /** @param {KeyboardEvent} event */
  const plain = (event) => {
    if (event.ctrlKey || event.metaKey) return null;
    const { session } = app.state;
    if (event.key === "Escape" && session?.running && !app.readOnly) return () => session.cancel();
    if (closestTo(event, "input, textarea, select, [contenteditable]")) return null;
    return { "?": showKeys, "/": () => app.focusComposer() }[event.key] ?? null;
  };
}
