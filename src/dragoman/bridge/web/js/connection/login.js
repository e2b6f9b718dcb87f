/** The login view of a browser without a cookie: the reason, and the two ways to log in. */

import { el, icon } from "../page/dom.js";

/**
 * @param {HTMLElement} root
 * @param {string} [reason]
 */
export function showLogin(root, reason) {
  const field = el("input", {
    class: "input",
    type: "password",
    id: "token",
    autocomplete: "current-password",
    spellcheck: "false",
    required: true,
  });
  const error = el("p", { class: "field-error", role: "alert", hidden: true });
  const button = el("button", { type: "submit", class: "button button-primary" }, "Go in");
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    const problem = await logIn(field.value.trim());
    button.disabled = false;
    if (problem === null) return location.reload();
    error.hidden = false;
    error.textContent = problem;
    field.select();
  };
  const form = el(
    "form",
    { class: "login-form", onsubmit: submit },
    el("label", { class: "field-label", for: "token" }, "Token, or a fresh link"),
    field,
    error,
    button,
  );
  root.replaceChildren(
    el(
      "main",
      { class: "login" },
      icon("shield", "face-icon"),
      el("h1", {}, "This browser is not let in yet"),
      el("p", {}, reason || "The link you came by works once, and only for the browser that opened it first."),
      el(
        "p",
        { class: "field-hint" },
        "Open a fresh link, as ",
        el("code", {}, "dragoman serve"),
        " prints it, or paste it here. The token it keeps in its home directory works too.",
      ),
      form,
    ),
  );
  field.focus();
}

/** @param {string} text */
async function logIn(text) {
  const code = codeOf(text);
  const body = JSON.stringify(code === null ? { token: text } : { code });
  try {
    const response = await fetch("./login", { method: "POST", headers: { "content-type": "application/json" }, body });
    if (response.ok) return null;
    if (response.status === 429) return "Too many tries; wait a minute.";
    return code === null ? "This is not the token." : "This link was used already, or is too old. Ask for a fresh one.";
  } catch {
    return "The bridge cannot be reached.";
  }
}

/**
 * The one-time code of a link, or null when the text is not a link.
 *
 * @param {string} text
 */
function codeOf(text) {
  try {
    return new URL(text).searchParams.get("code");
  } catch {
    return null;
  }
}
