/**
 * An agent's introduction to an empty conversation: its model, and example prompts for the directory. Only
 * agents that name these requests in their capabilities are asked. For others nothing is shown.
 */

const KEY = "dragoman/start";
const MOST_KNOWN = 50;

// For our own agent, if it has no examples for the directory.
const ANYWHERE = [
  "What is in this directory?",
  "Explain what this project does.",
  "Run the tests and explain what fails, if anything does.",
  "What changed in the last commits?",
  "Find the TODOs here and suggest which to do first.",
];

export class Introductions {
  /** @type {page.App} */
  #app;
  /** @type {Map<string, bridge.Introduction | null>} */
  #known = new Map();

  /** @param {page.App} app */
  constructor(app) {
    this.#app = app;
  }

  /**
   * The names of the requests, or null if the agent has none.
   *
   * @returns {bridge.StartMethods | null}
   */
  get methods() {
    const named = this.#app.capabilities._meta?.[KEY];
    return this.#app.readOnly || !named?.introduce ? null : named;
  }

  /**
   * The known introduction for a directory. If it is unknown, request it and fire "introduction" on the state later.
   *
   * @param {string} cwd
   * @param {page.Session | null} session
   * @returns {bridge.Introduction | null}
   */
  find(cwd, session) {
    if (!this.methods) return null;
    const key = JSON.stringify([this.#app.agentName, cwd, session?.id, modelOf(session)]);
    if (!this.#known.has(key)) this.#ask(key, this.methods, cwd, session);
    return this.#known.get(key) ?? null;
  }

  /** Open the dialog that connects a model. */
  async openConnect() {
    try {
      const { openConnect } = await import("./connect.js");
      openConnect(this.#app);
    } catch (error) {
      console.error(error);
      this.#app.toast("The dialog could not be loaded. Reload the page to try again.", "error");
    }
  }

  /** Request again, because a model was connected. */
  forget() {
    this.#known.clear();
    this.#app.state.touchIntroduction();
  }

  /**
   * @param {string} key
   * @param {bridge.StartMethods} methods
   * @param {string} cwd
   * @param {page.Session | null} session
   */
  async #ask(key, methods, cwd, session) {
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(key, null);
    try {
      const result = await this.#app.connection.request(methods.introduce, { cwd, ...(session && { sessionId: session.id }) });
      this.#known.set(key, result);
      this.#app.setContentTypes(result.takes ?? []);
    } catch (error) {
      this.#known.set(key, { model: "", isLanguageModel: true, words: "", prompts: ANYWHERE, takes: [], error });
    }
    this.#app.state.touchIntroduction();
  }
}

/** @param {page.Session | null} session */
function modelOf(session) {
  const option = session?.transcript.configOptions?.find(({ category }) => category === "model");
  return option?.currentValue ?? null;
}
