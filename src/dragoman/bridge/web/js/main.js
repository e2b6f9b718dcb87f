/** Builds the page, or the login view if the browser is not logged in. */

import { App } from "./app/app.js";
import { Questions } from "./questions/questions.js";
import { Banner } from "./connection/banner.js";
import { Composer } from "./composer/composer.js";
import { Conversation } from "./conversation/conversation.js";
import { el, fill, find, icon } from "./page/dom.js";
import { forgetRefusal, showLogin } from "./connection/login.js";
import { Options } from "./composer/options.js";
import { Plan } from "./composer/plan.js";
import { listenForKeys, showKeys } from "./app/shortcuts.js";
import { Toasts, narrate } from "./page/toast.js";
import { Topbar } from "./topbar/topbar.js";
import { Usage } from "./composer/usage.js";

const RETRY_MS = 2_000;

const body = document.body;
/**
 * One of the elements of index.html.
 *
 * @param {string} id
 */
function part(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}


async function begin() {
  const response = await fetch("./config.json", { cache: "no-store" }).catch(() => null);
  if (response === null || response.status >= 500) return tryLater();
  if (response.status === 401 || response.status === 403) return showLogin(body);
  if (response.status === 429) return tryLater();
  const config = await response.json();
  forgetRefusal();
  start(config);
}

function tryLater() {
  const words = "The bridge cannot be reached. Is it running? Trying again…";
  fill(
    part("stage"),
    el("div", { class: "face", role: "status" }, el("span", { class: "spinner" }), el("p", {}, words)),
  );
  setTimeout(begin, RETRY_MS);
}

/** @param {bridge.Config} config */
function start(config) {
  const app = new App(config);
  const toasts = new Toasts(body);
  app.toast = (words, kind) => toasts.show(words, kind);
  app.announce = (words) => toasts.announce(words);
  fill(part("conversation"));
  const drawer = mountDrawer(app);
  new Topbar(part("topbar"), app, { toggleDrawer: drawer.toggle, showHelp: showKeys });
  new Banner(part("banner"), app);
  new Conversation(part("conversation"), app);
  new Questions(part("questions"), app);
  new Plan(part("plan"), app);
  const composer = new Composer(part("composer"), app);
  app.focusComposer = () => composer.focus();
  app.propose = (text) => composer.propose(text);
  app.composer = composer;
  new Options(composer.options, app);
  new Usage(part("usage"), app);
  narrate(app);
  mountViews(app);
  const sidebar = mountSessions(app);
  const newSession = async () => {
    const list = await sidebar;
    if (list) await list.newSession();
    else app.leaveSession();
  };
  listenForKeys(app, { focusSidebar: drawer.focus, newSession });
  app.state.addEventListener(
    "connection",
    () => app.state.connection.phase === "refused" && showLogin(body, "This browser is no longer signed in."),
  );
  app.start();
  Object.assign(globalThis, { dragoman: app });
}

/** @param {App} app */
function mountViews(app) {
  const views = { conversation: part("chat"), review: part("review"), inspector: part("inspector") };
  const show = () => {
    for (const [name, element] of Object.entries(views)) element.hidden = name !== app.state.view;
    if (app.state.view === "inspector") mountInspectorOnce(app);
    if (app.state.view === "review") mountReviewOnce(app);
  };
  app.state.addEventListener("view", show);
  show();
}

/**
 * Load the sidebar. The conversation works without it if loading fails.
 *
 * @param {App} app
 */
async function mountSessions(app) {
  try {
    const { mountSidebar } = await import("./sidebar/sidebar.js");
    return mountSidebar(app, part("sidebar"));
  } catch (error) {
    console.error(error);
    fill(
      part("sidebar"),
      el(
        "div",
        { class: "loading", role: "status" },
        el("p", {}, "The session list could not be loaded."),
        el("button", { type: "button", class: "button", onclick: () => location.reload() }, icon("refresh"), "Reload"),
      ),
    );
    return null;
  }
}

/** @type {Promise<unknown> | null} */
let inspector = null;

/** @param {App} app */
function mountInspectorOnce(app) {
  inspector ??= import("./inspector/inspector.js")
    .then(({ mountInspector }) => mountInspector(app, part("inspector")))
    .catch((error) => {
      console.error(error);
      app.toast("The wire inspector could not be shown.", "error");
    });
}

/** @type {Promise<unknown> | null} */
let review = null;

/** @param {App} app */
function mountReviewOnce(app) {
  review ??= import("./review/review.js")
    .then(({ Review }) => new Review(part("review"), app))
    .catch((error) => {
      console.error(error);
      app.toast("The changed files could not be shown.", "error");
    });
}

/**
 * On a phone the sidebar is a drawer over the page, opened by a button.
 *
 * @param {App} app
 */
function mountDrawer(app) {
  const root = document.documentElement;
  const sidebar = part("sidebar");
  const narrow = matchMedia("(max-width: 52rem)");
  const set = (/** @type {boolean} */ open) => {
    root.classList.toggle("drawer-open", open);
    sidebar.inert = narrow.matches && !open;
    part("main").inert = narrow.matches && open;
  };
  app.closeDrawer = () => set(false);
  narrow.addEventListener("change", () => set(false));
  part("scrim").addEventListener("click", () => set(false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || !root.classList.contains("drawer-open")) return;
    // A dialog or menu over the drawer closes before the drawer.
    if (document.querySelector("dialog[open], :popover-open")) return;
    event.preventDefault();
    set(false);
    find(part("topbar"), "button")?.focus();
  });
  set(false);
  const focus = () => {
    set(narrow.matches);
    find(sidebar, "input, button, a, [tabindex='0']")?.focus();
  };
  return { toggle: () => (root.classList.contains("drawer-open") ? set(false) : focus()), focus };
}

begin();
