/** The login view of a browser without a cookie: the reason, and the two ways to log in. */

import { el, icon } from "../page/dom.js";

/**
 * Who came here, and by what. A link that is refused leads here with the kind of person it was for.
 *
 * @type {Record<string, { title: string, words: page.Child[], label: string }>}
 */
const FACES = {
  reader: {
    title: "This link was used already, or is too old",
    words: ["A link to read along works once, in the browser that opened it first. Ask the person who sent it for another one."],
    label: "A fresh link",
  },
  owner: {
    title: "This link was used already, or is too old",
    words: ["It works once, in the browser that opened it first. Press Enter where ", el("code", {}, "dragoman serve"), " runs: it prints a fresh one."],
    label: "A fresh link, or the token of the bridge",
  },
  nobody: {
    title: "This browser is not let in yet",
    words: [
      "This page opens by a link. If the bridge is yours, press Enter where ",
      el("code", {}, "dragoman serve"),
      " runs: it prints one. If it is somebody else's, ask that person for a link.",
    ],
    label: "A link, or the token of the bridge",
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
  const button = el("button", { type: "submit", class: "button button-primary" }, "Go in");
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

/** A browser that is let in was not refused. */
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
