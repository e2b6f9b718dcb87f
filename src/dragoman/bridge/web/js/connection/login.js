/** The login view of a browser without a cookie, with the reason and the two login methods. */

import { el, icon } from "../page/dom.js";

/**
 * The texts by kind of visitor. A refused link redirects here with the kind of its user.
 *
 * @type {Record<string, { title: string, words: page.Child[], label: string }>}
 */
const FACES = {
  reader: {
    title: "This link was already used or has expired",
    words: ["A read-only link works once, in the browser that opened it first. Ask the person who sent it for a new one."],
    label: "A new link",
  },
  owner: {
    title: "This link was already used or has expired",
    words: ["It works once, in the browser that opened it first. Press Enter in the terminal where ", el("code", {}, "dragoman serve"), " runs to print a new one."],
    label: "A new link, or the bridge's token",
  },
  nobody: {
    title: "Sign in to this bridge",
    words: [
      "You need a sign-in link. If the bridge is yours, press Enter in the terminal where ",
      el("code", {}, "dragoman serve"),
      " runs to print one. Otherwise ask its owner for a link.",
    ],
    label: "A link, or the bridge's token",
  },
};

/**
 * @param {HTMLElement} root
 * @param {string} [reason]
 */
export function showLogin(root, reason) {
  const refused = new URLSearchParams(location.search).get("refused") ?? "";
  const face = (Object.hasOwn(FACES, refused) && FACES[refused]) || FACES.nobody;
  const field = el("input", {
    class: "input",
    type: "password",
    id: "token",
    autocomplete: "current-password",
    spellcheck: "false",
    required: true,
  });
  const error = el("p", { class: "field-error", role: "alert", hidden: true });
  const button = el("button", { type: "submit", class: "button button-primary" }, "Sign in");
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    const problem = await logIn(field.value.trim());
    button.disabled = false;
    if (problem === null) {
      forgetRefusal();
      return location.reload();
    }
    error.hidden = false;
    error.textContent = problem;
    field.select();
  };
  const form = el(
    "form",
    { class: "login-form", onsubmit: submit },
    el("label", { class: "field-label", for: "token" }, face.label),
    field,
    error,
    button,
  );
  root.replaceChildren(
    el(
      "main",
      { class: "login" },
      icon("shield", "face-icon"),
      el("h1", {}, face.title),
      reason && el("p", {}, reason),
      el("p", { class: reason ? "field-hint" : "" }, ...face.words),
      form,
    ),
  );
  field.focus();
}

/** Remove the refusal from the URL after a successful login. */
export function forgetRefusal() {
  if (location.search) history.replaceState(null, "", `${location.pathname}${location.hash}`);
}

/** @param {string} text */
async function logIn(text) {
  const code = codeOf(text);
  const body = JSON.stringify(code === null ? { token: text } : { code });
  try {
    const response = await fetch("./login", { method: "POST", headers: { "content-type": "application/json" }, body });
    if (response.ok) return null;
    if (response.status === 429) return "Too many attempts. Wait a minute.";
    return code === null ? "The token is wrong." : "This link was already used or has expired. Ask for a new one.";
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
