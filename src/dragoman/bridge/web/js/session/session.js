/**
 * One session as this page sees it: its transcript, its cursor in the journal, and its open questions.
 *
 * Its events: "items" (the transcript grew; `takeChanged()` gives the items), "facts" (title, options, plan,
 * usage, servers, running), "questions" (the open questions changed), "reset" (everything changed), "phase",
 * "sent" (a prompt of this page).
 */

import { Failure, explain } from "../connection/failure.js";
import { Transcript, isMessage } from "./transcript.js";

const ASIDES = ["failure", "notice"];

export class Session extends EventTarget {
  /** @type {page.App} */
  #app;
  /** @type {string | null} */
  #cursor = null;
  /** @type {Set<page.Item>} */
  #changed = new Set();
  /** @type {Promise<void> | null} */
  #attaching = null;
  /**
   * Failures that are not in the transcript yet, each with the time until which it was told.
   *
   * @type {Array<{ error: acp.Error, at: number }>}
   */
  #failures = [];

  /**
   * @param {page.App} app
   * @param {string} id
   * @param {{ cwd: string }} options
   */
  constructor(app, id, { cwd }) {
    super();
    this.#app = app;
    this.id = id;
    this.cwd = cwd;
    this.transcript = new Transcript();
    /** @type {page.Question[]} */
    this.questions = [];
    /**
     * With "failed", `problem` says why.
     *
     * @type {"loading" | "ready" | "failed"}
     */
    this.phase = "loading";
    /** @type {string | null} */
    this.problem = null;
    this.sending = false;
    this.stopping = false;
    this.stale = true;
    /**
     * How the last turn failed, while nothing came after it.
     *
     * @type {acp.Error | null}
     */
    this.failure = null;
  }

  /**
   * The last news of the bridge about it.
   *
   * @returns {Partial<bridge.SessionFacts>}
   */
  get facts() {
    return this.#app.state.sessions.get(this.id) ?? {};
  }

  get title() {
    return this.transcript.title ?? this.facts.title ?? null;
  }

  get running() {
    return this.sending || this.facts.state === "running";
  }

  /**
   * Take over a session that was just made.
   *
   * @param {acp.NewSessionResponse} result
   * @param {acp.SessionNotification[]} early
   */
  begin(result, early) {
    this.transcript.begin(result);
    for (const params of early) this.receive(params);
    this.stale = false;
    this.#enter("ready");
  }

  /** Get the history, or after a break what was missed. */
  attach() {
    this.#attaching ??= this.#attach().finally(() => {
      this.#attaching = null;
    });
    return this.#attaching;
  }

  async #attach() {
    if (!this.stale) return;
    this.#setQuestions([]);
    const after = this.#cursor;
    if (after === null) this.#clear("loading");
    /** @type {acp.LoadSessionRequest} */
    const params = { sessionId: this.id, cwd: this.cwd, mcpServers: [] };
    if (after !== null) params._meta = { dragoman: { after } };
    try {
      const result = await this.#app.connection.request("session/load", params);
      this.transcript.begin(result);
      this.stale = false;
      this.#noteFailure(this.facts.error);
      this.#enter("ready");
    } catch (error) {
      // A broken connection is tried again by itself and shown elsewhere.
      if (this.#app.connection.isOpen) this.#fail(explain(error));
      throw error;
    }
  }

  /**
   * One `session/update`.
   *
   * @param {Pick<acp.SessionNotification, "update" | "_meta">} params
   */
  receive({ update, _meta }) {
    const told = _meta?.dragoman;
    if (told?.cursor) this.#cursor = told.cursor;
    if (update?.sessionUpdate === "user_message_chunk") this.#keepFailure(told?.time ?? Infinity);
    const changed = this.transcript.apply(update ?? {}, told?.time ?? null);
    if (changed === null) return;
    if (typeof changed === "string") this.#fire("facts");
    else {
      this.#changed.add(changed);
      this.#fire("items");
    }
  }

  /**
   * The next message leaves it behind; news of it may come before the message that failed, which does not.
   *
   * @param {number} time
   */
  #keepFailure(time) {
    for (let next = this.#failures[0]; next && next.at < time; next = this.#failures[0]) {
      const { error } = next;
      this.#failures.shift();
      this.#changed.add(this.transcript.fail(error));
      if (same(error, this.failure)) this.failure = null;
    }
  }

  /** @param {acp.Error | null | undefined} error */
  #noteFailure(error) {
    this.failure = error ?? null;
    const last = this.#failures.at(-1);
    if (this.failure === null || (last && same(last.error, this.failure))) return;
    this.#failures.push({ error: this.failure, at: Date.parse(this.facts.updatedAt ?? "") || 0 });
  }

  takeChanged() {
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
  }

  /**
   * One `_dragoman/session` about it.
   *
   * @param {bridge.SessionFacts} facts
   */
  told(facts) {
    if (facts.cwd) this.cwd = facts.cwd;
    if (facts.reset) this.#clear(this.phase);
    if (facts.state !== "running") this.stopping = false;
    // News before a history is about the end of that history.
    if (facts.state !== "running" && !this.#attaching) this.#noteFailure(facts.error);
    this.#fire("facts");
  }

  /** Nobody looks at it here any more: what comes, and what waits, must be asked for again. */
  leave() {
    this.stale = true;
    this.#setQuestions([]);
  }

  /** The connection is gone: what waits cannot be answered, what comes must be asked for again. */
  lose() {
    this.stale = true;
    this.sending = false;
    this.stopping = false;
    this.#setQuestions([]);
    this.#fire("facts");
  }

  // ── requests of the agent ─────────────────────────────────────────────────────────────────────

  /**
   * @param {page.Question["method"]} method
   * @param {any} params
   * @param {page.Answer} answer
   */
  receiveQuestion(method, params, answer) {
    /** @type {page.Question} */
    const question = {
      id: answer.id,
      method,
      params,
      settled: null,
      answer: (result) => {
        if (question.settled) return;
        answer.result(result);
        this.#settle(question, { by: "you", result });
      },
    };
    this.#setQuestions([...this.questions, question]);
  }

  /** @param {bridge.Settled} settled */
  settled({ requestId, by, result }) {
    const question = this.questions.find((one) => one.id === requestId);
    if (question && !question.settled) this.#settle(question, { by, result: result ?? null });
  }

  /**
   * An interaction at another address is over.
   *
   * @param {acp.CompleteElicitationNotification} params
   */
  completed({ elicitationId }) {
    const question = this.questions.find(({ params }) => "elicitationId" in params && params.elicitationId === elicitationId);
    if (question) this.dismiss(question);
  }

  /** @param {page.Question} question */
  dismiss(question) {
    this.#setQuestions(this.questions.filter((one) => one !== question));
  }

  /**
   * @param {page.Question} question
   * @param {page.Settled} settled
   */
  #settle(question, settled) {
    question.settled = settled;
    if (settled.by === "you") this.dismiss(question);
    else this.#fire("questions");
  }

  /** @param {page.Question[]} questions */
  #setQuestions(questions) {
    this.questions = questions;
    this.#fire("questions");
  }

  // ── actions of a person ────────────────────────────────────────────────────────────────────────

  /**
   * Send a prompt. Resolves to whether it was refused: an error came, and nothing was done for it. Rejects when it
   * never reached the history.
   *
   * @param {acp.ContentBlock[]} blocks
   */
  async prompt(blocks) {
    this.sending = true;
    this.#fire("facts");
    this.#fire("sent");
    const before = this.transcript.items.length;
    try {
      await this.#app.connection.request("session/prompt", { sessionId: this.id, prompt: blocks });
      return false;
    } catch (error) {
      const since = this.transcript.items.slice(before).filter((item) => !ASIDES.includes(item.type));
      if (!since.some((item) => isMessage(item, "user"))) throw error;
      // Without a code it is the connection that broke, and the turn goes on.
      if (!(error instanceof Failure) || error.code === null) return false;
      this.failure ??= { code: error.code, message: error.message, data: error.data };
      return since.every((item) => isMessage(item, "user"));
    } finally {
      this.sending = false;
      this.stopping = false;
      this.#fire("facts");
    }
  }

  cancel() {
    if (!this.running) return;
    this.stopping = true;
    this.#app.connection.notify("session/cancel", { sessionId: this.id });
    this.#fire("facts");
  }

  /** @param {string} modeId */
  async setMode(modeId) {
    await this.#app.connection.request("session/set_mode", { sessionId: this.id, modeId });
    this.receive({ update: { sessionUpdate: "current_mode_update", currentModeId: modeId } });
  }

  /**
   * @param {page.Option} option
   * @param {string | boolean} value
   */
  async setOption(option, value) {
    /** @type {bridge.Requests["session/set_config_option"]["params"]} */
    const params = { sessionId: this.id, configId: option.id, value };
    if (option.type === "boolean") params.type = "boolean";
    const { configOptions } = await this.#app.connection.request("session/set_config_option", params);
    this.receive({ update: { sessionUpdate: "config_option_update", configOptions } });
  }

  // ── inside ────────────────────────────────────────────────────────────────────────────────────

  /** @param {Session["phase"]} phase */
  #clear(phase) {
    const { modes, configOptions } = this.transcript;
    this.transcript = new Transcript();
    this.transcript.begin({ modes, configOptions });
    this.#changed.clear();
    this.#failures = [];
    this.#cursor = null;
    this.#enter(phase);
    this.#fire("reset");
  }

  /** @param {string} problem */
  #fail(problem) {
    this.problem = problem;
    this.#enter("failed");
  }

  /** @param {Session["phase"]} phase */
  #enter(phase) {
    const moved = this.phase !== phase;
    this.phase = phase;
    if (phase !== "failed") this.problem = null;
    if (moved) this.#fire("phase");
    this.#fire("facts");
  }

  /** @param {string} name */
  #fire(name) {
    this.dispatchEvent(new Event(name));
    if (name === "facts" && this.#app.state.session === this) this.#app.state.touchSession();
  }
}

/**
 * @param {unknown} one
 * @param {unknown} other
 */
function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
