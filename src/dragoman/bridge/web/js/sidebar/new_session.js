/** The dialog for a new session: its directory, agent and MCP servers. */

import { el } from "../page/dom.js";
import { explain } from "../connection/failure.js";
import { ask, field } from "./dialog.js";
import { ServerList } from "./servers.js";

/**
 * Resolves to the new session's id, or null.
 *
 * @param {page.App} app
 */
export async function askForNewSession(app) {
  const directory = el("input", { class: "input", list: "known-directories", spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  directory.value = app.state.session?.cwd ?? app.config.cwd ?? "";
  const servers = new ServerList(app);
  const agent = agentChoice(app);
  const made = await ask({
    title: "New session",
    body: [
      agent && field("Agent", agent),
      field("Directory", directory, "Where the agent works: an absolute path on its machine."),
      knownDirectories(app),
      servers.element,
    ].filter(Boolean),
    action: "Start",
    submit: () => start(app, { directory, servers, agent }),
  });
  // On a phone, do not open the keyboard yet.
  if (made !== null && matchMedia("(hover: hover)").matches) app.focusComposer();
  return made;
}

/**
 * @param {page.App} app
 * @param {{ directory: HTMLInputElement, servers: ServerList, agent: HTMLSelectElement | null }} given
 */
async function start(app, { directory, servers, agent }) {
  const cwd = directory.value.trim();
  directory.removeAttribute("aria-invalid");
  if (!/^(\/|[A-Za-z]:[\\/]|\\\\)/.test(cwd)) {
    directory.setAttribute("aria-invalid", "true");
    directory.focus();
    throw new Error("The directory must be an absolute path such as /home/me/project.");
  }
  if (agent && agent.value !== app.agentName) {
    const before = app.agentName;
    app.chooseAgent(agent.value);
    await opened(app).catch((error) => {
      app.chooseAgent(before);
      throw error;
    });
  }
  try {
    return await app.newSession({ cwd, mcpServers: servers.value() });
  } catch (error) {
    throw new Error(explain(error), { cause: error });
  }
}

/**
 * A list of the agents, or null if there is only one.
 *
 * @param {page.App} app
 */
export function agentChoice(app) {
  const agents = app.config.agents ?? [];
  if (agents.length < 2) return null;
  const select = el("select", { class: "input" }, agents.map(({ name, title }) => el("option", { value: name }, title || name)));
  select.value = app.agentName ?? "";
  return select;
}

/** @param {page.App} app */
function knownDirectories(app) {
  const known = new Set([app.config.cwd, ...[...app.state.sessions.values()].map(({ cwd }) => cwd)].filter(Boolean));
  return el("datalist", { id: "known-directories" }, [...known].slice(0, 50).map((value) => el("option", { value })));
}

/**
 * Resolves when the connection is open. Rejects if it cannot be opened.
 *
 * @param {page.App} app
 * @returns {Promise<void>}
 */
function opened(app) {
  return new Promise((resolve, reject) => {
    const look = () => {
      const { phase, reason } = app.connection.state;
      if (phase === "connecting" || phase === "reconnecting") return;
      app.state.removeEventListener("connection", look);
      if (phase === "open") resolve();
      else reject(new Error(reason ?? "The agent cannot be reached."));
    };
    app.state.addEventListener("connection", look);
    look();
  });
}
