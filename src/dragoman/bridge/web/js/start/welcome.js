/** The start page of an empty conversation: the agent's introduction, its model and example prompts. */

import { el, icon } from "../page/dom.js";
import { explain, sentence } from "../connection/failure.js";
import { cleanText, oneLine, visible } from "../text/safe.js";

// The method id of an agent that needs no login. The protocol has no other way to express that.
const NO_LOGIN = "none";

/**
 * @param {page.App} app
 * @param {string} cwd
 * @param {page.Session | null} session
 * @returns {{ key: string, make: () => HTMLElement }}
 */
export function welcome(app, cwd, session) {
  if (app.readOnly) return { key: "reading", make: reading };
  const introduction = app.introductions.find(cwd, session);
  const methods = app.introductions.methods ? [] : (app.initialized?.authMethods ?? []).filter(({ id }) => id !== NO_LOGIN);
  const key = JSON.stringify(["welcome", app.agentName, cwd, introduction, introduction?.error && explain(introduction.error), methods]);
  return { key, make: () => face(app, cwd, introduction, methods) };
}

function reading() {
  return el(
    "div",
    { class: "face" },
    icon("eye", "face-icon"),
    el("h2", {}, "You have read-only access"),
    el("p", {}, "Choose a session from the list."),
  );
}

/**
 * @param {page.App} app
 * @param {string} cwd
 * @param {bridge.Introduction | null} introduction
 * @param {acp.AuthMethod[]} methods
 */
function face(app, cwd, introduction, methods) {
  const info = app.initialized?.agentInfo;
  const name = oneLine(info?.title || info?.name || "the agent");
  return el(
    "div",
    { class: "face start" },
    mark(),
    el("h2", {}, `Start with ${name}`),
    el(
      "p",
      {},
      `${name} ${app.introductions.methods ? "is an agent: it reads and changes files and runs commands" : "works"} in `,
      el("code", { class: "start-where" }, visible(cwd)),
      ". You see every step here and answer its requests.",
    ),
    introduction && answering(app, introduction),
    methods.length > 0 && logins(app, name, methods),
    introduction && prompts(app, introduction.prompts),
    el("p", { class: "face-hint" }, hint()),
  );
}

/**
 * The current model, and a button that connects another one.
 *
 * @param {page.App} app
 * @param {bridge.Introduction} introduction
 */
function answering(app, { words, isLanguageModel, error }) {
  if (!app.introductions.methods) return null;
  const button = el(
    "button",
    { type: "button", class: isLanguageModel ? "button" : "button button-primary", onclick: () => app.introductions.openConnect() },
    icon("plug"),
    isLanguageModel && !error ? "Change the model" : "Connect a model",
  );
  const problem = error ? sentence(explain(error)) : words;
  return el("div", { class: "start-model" }, el("p", { class: error ? "bad" : "" }, cleanText(problem)), button);
}

/**
 * The login methods of another agent.
 *
 * @param {page.App} app
 * @param {string} name
 * @param {acp.AuthMethod[]} methods
 */
function logins(app, name, methods) {
  return el(
    "details",
    { class: "start-logins" },
    el("summary", {}, `Sign in to ${name}`),
    el("ul", {}, methods.map((method) => el("li", {}, login(app, method)))),
  );
}

/**
 * @param {page.App} app
 * @param {acp.AuthMethod} method
 */
function login(app, method) {
  const words = el("div", {}, el("strong", {}, oneLine(method.name ?? method.id)), method.description && el("p", {}, cleanText(method.description)));
  // The page can only start logins that the agent performs.
  if ((Reflect.get(method, "type") ?? "agent") !== "agent") {
    return [words, el("p", { class: "face-hint" }, "Sign in on the agent's machine.")];
  }
  const button = el("button", { type: "button", class: "button" }, "Sign in");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await app.logIn(method.id);
      app.toast("You are signed in.", "info");
    } catch (error) {
      app.toast(explain(error), "error");
    }
    button.disabled = false;
  });
  return [words, button];
}

/**
 * @param {page.App} app
 * @param {string[]} examples
 */
function prompts(app, examples) {
  const rows = examples.map((text) =>
    el("li", {}, el("button", { type: "button", class: "start-prompt", onclick: () => app.propose(text) }, oneLine(text))),
  );
  return el("section", { class: "start-prompts", "aria-label": "Prompts to try" }, el("h3", {}, "Try one of these"), el("ul", {}, rows));
}

function hint() {
  return [
    "Type ",
    el("kbd", {}, "/"),
    " for commands, ",
    el("kbd", {}, "@"),
    " and a path to mention a file.",
    el("span", { class: "face-keys" }, " All shortcuts: ", el("kbd", {}, "?"), " above."),
  ];
}

/** The logo: two speech bubbles and a line between them. */
function mark() {
  return el("span", { class: "mark", "aria-hidden": "true" }, el("span", {}), el("span", {}));
}
