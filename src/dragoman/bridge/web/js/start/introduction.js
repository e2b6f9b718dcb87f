/**
 * What an agent tells about an empty conversation: the model that answers, and prompts to try in the directory. Only
 * an agent that names the requests for it in its capabilities is asked: of others nothing is known, and none is said.
 */

const KEY = "dragoman/start";
const MOST_KNOWN = 50;

// For our own agent, when it cannot say what suits the directory.
const ANYWHERE = [
  "What is in this directory?",
  "Explain what this project does.",
  "Run the tests and explain what fails, if anything does.",
  "What changed in the last commits?",
  "Find the TODOs here and say which to do first.",
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
   * The names of the requests, or null for an agent that has none of them.
   *
   * @returns {bridge.StartMethods | null}
   */
  get methods() {
    const named = this.#app.capabilities._meta?.[KEY];
    return this.#app.readOnly || !named?.introduce ? null : named;
  }

  /**
   * What is known for a place by now; what is not is asked for, and an "introduction" event of the state follows.
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

  /** Ask anew, because a model was connected. */
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
      const told = await this.#app.connection.request(methods.introduce, { cwd, ...(session && { sessionId: session.id }) });
      this.#known.set(key, told);
      this.#app.noteTakes(told.takes ?? []);
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
