/** The keyboard shortcuts, and the dialog that lists them. */

import { closestTo, el } from "../page/dom.js";

const KEYS = [
  ["?", "Show keyboard shortcuts"],
  ["Enter", "Send the message. While the agent works: add it to the turn if the agent supports that, otherwise queue it"],
  ["Ctrl Enter", "While the agent works: queue the message for after this turn"],
  ["Shift Enter", "Start a new line"],
  ["Esc", "Stop the agent, reject or dismiss a request, or close a panel"],
  ["1 … 9", "Answer a request with that option"],
  ["/", "Go to the message field; in the field: choose a command"],
  ["@", "In the message field: mention a file"],
  ["↑", "In the empty field: recall the last message"],
  ["Ctrl F", "Find in this session; again: find of the browser"],
  ["Alt N", "New session"],
  ["Alt S", "Go to the sessions"],
  ["F2", "In the session list: rename the selected session"],
  ["Alt C", "Show or hide changed files"],
  ["Alt I", "Show or hide the wire inspector"],
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
    el("h2", { class: "dialog-title", id: "keys-title" }, "Keyboard shortcuts"),
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
    const action = event.altKey && !event.ctrlKey && !event.metaKey ? withAlt(event) : (find(event) ?? plain(event));
    if (!action) return;
    event.preventDefault();
    action();
  });

  // By the key's position, because Alt changes the letter in many layouts.
  /** @param {KeyboardEvent} event */
  const withAlt = ({ code }) =>
    ({
      KeyN: newSession,
      KeyS: focusSidebar,
      KeyC: () => app.show(app.state.view === "review" ? "conversation" : "review"),
      KeyI: () => app.show(app.state.view === "inspector" ? "conversation" : "inspector"),
    })[code];

  // While the find box has the focus, the browser's own find opens.
  /** @param {KeyboardEvent} event */
  const find = (event) => {
    const isFind = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.code === "KeyF";
    const { session, view } = app.state;
    if (!isFind || session === null || view !== "conversation" || closestTo(event, ".find-bar")) return null;
    return app.find;
  };

  /** @param {KeyboardEvent} event */
  const plain = (event) => {
    if (event.ctrlKey || event.metaKey) return null;
    const { session } = app.state;
    if (event.key === "Escape" && session?.running && !app.readOnly) return () => session.cancel();
    if (closestTo(event, "input, textarea, select, [contenteditable]")) return null;
    return { "?": showKeys, "/": () => app.focusComposer() }[event.key] ?? null;
  };
}
