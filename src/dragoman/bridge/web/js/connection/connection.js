/**
 * JSON-RPC with the bridge over one WebSocket, which reconnects after a failure.
 *
 * The states, as `state.phase`:
 *   "idle"         not started yet, or `stop` was called
 *   "connecting"   the first attempt
 *   "open"         initialized: requests pass
 *   "waiting"      broken; `retryAt` (ms since the epoch) is the time of the next attempt, `reason` the cause
 *   "reconnecting" a later attempt
 *   "refused"      the login has expired, so the user must log in again
 */

import { Failure, explain } from "./failure.js";

const FIRST_RETRY_MS = 300;
const LONGEST_RETRY_MS = 15_000;
// A network can lose a socket silently, and a page cannot see the bridge's pings.
const OPEN_TIMEOUT_MS = 15_000;

export class Connection extends EventTarget {
  /** @type {WebSocket | null} */
  #socket = null;
  #nextId = 1;
  /** @type {Map<number, { resolve: (result: any) => void, reject: (failure: Failure) => void }>} */
  #waiting = new Map();
  /** @type {Map<string, Set<(params: any) => void>>} */
  #listeners = new Map();
  /** @type {Map<string, (params: any, answer: page.Answer) => void>} */
  #answerers = new Map();
  #retryMs = FIRST_RETRY_MS;
  /** @type {number | undefined} */
  #timer = undefined;
  #tries = 0;

  /**
   * `url()` returns the address, `greet(send)` initializes the connection, and `allowed()` checks the login.
   *
   * @param {{ url: () => URL, greet: (send: page.Connection["request"]) => Promise<void>, allowed: () => Promise<boolean | null> }} parts
   */
  constructor({ url, greet, allowed }) {
    super();
    this.url = url;
    this.greet = greet;
    this.allowed = allowed;
    /** @type {page.ConnectionState} */
    this.state = { phase: "idle" };
    addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.retryNow());
  }

  get isOpen() {
    return this.state.phase === "open";
  }

  /**
   * Send a request. Rejects with a Failure (`code`, `message`, `data`), also if the connection breaks.
   *
   * @template {keyof bridge.Requests} Method
   * @param {Method} method
   * @param {bridge.Requests[Method]["params"]} params
   * @returns {Promise<bridge.Requests[Method]["result"]>}
   */
  request(method, params) {
    if (!this.isOpen) return Promise.reject(new Failure("Not connected to the bridge."));
    return this.#send(method, params);
  }

  /**
   * @template {keyof bridge.Notices} Method
   * @param {Method} method
   * @param {bridge.Notices[Method]} params
   */
  notify(method, params) {
    if (this.isOpen) this.#write({ jsonrpc: "2.0", method, params });
  }

  /**
   * Listen to a notification. Return the function that stops listening.
   *
   * @template {keyof bridge.News} Method
   * @param {Method} method
   * @param {(params: bridge.News[Method]) => void} fn
   */
  on(method, fn) {
    const listeners = this.#listeners.get(method) ?? new Set();
    this.#listeners.set(method, listeners.add(fn));
    return () => listeners.delete(fn);
  }

  /**
   * Answer a request of the agent: `fn(params, answer)`, with `answer.id`, `answer.result(…)` and `answer.error(…)`.
   *
   * @param {string} method
   * @param {(params: any, answer: page.Answer) => void} fn
   */
  onRequest(method, fn) {
    this.#answerers.set(method, fn);
  }

  start() {
    if (this.state.phase === "idle" || this.state.phase === "refused") this.#open("connecting");
  }

  stop() {
    clearTimeout(this.#timer);
    this.#drop("The connection was closed.");
    this.#move({ phase: "idle" });
  }

  retryNow() {
    if (this.state.phase !== "waiting") return;
    clearTimeout(this.#timer);
    this.#open("reconnecting");
  }

  /** @param {"connecting" | "reconnecting"} phase */
  #open(phase) {
    this.#move({ phase });
    const socket = new WebSocket(this.url());
    this.#socket = socket;
    const timer = setTimeout(() => socket.close(), OPEN_TIMEOUT_MS);
    socket.onopen = () => this.#initialize(socket).finally(() => clearTimeout(timer));
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => {
      clearTimeout(timer);
      if (socket === this.#socket) this.#broken(event.reason);
    };
  }

  /** @param {WebSocket} socket */
  async #initialize(socket) {
    try {
      await this.greet((method, params) => this.#send(method, params));
    } catch (error) {
      if (socket !== this.#socket) return;
      this.#drop(explain(error));
      this.#retryLater(explain(error), { refused: true, stderr: error instanceof Failure ? error.data?.stderr : "" });
      return;
    }
    this.#retryMs = FIRST_RETRY_MS;
    this.#tries += 1;
    this.#move({ phase: "open", again: this.#tries > 1 });
  }

  /** @param {string} reason */
  async #broken(reason) {
    this.#drop("The connection to the bridge was lost before the response arrived.");
    const allowed = await this.allowed();
    if (this.state.phase === "idle") return;
    if (allowed === false) this.#move({ phase: "refused" });
    else this.#retryLater(reason || "The bridge cannot be reached.");
  }

  /**
   * `refused` is set if the bridge answered but its agent did not start. `stderr` is the agent's output.
   *
   * @param {string} reason
   * @param {{ refused?: boolean, stderr?: string }} agent
   */
  #retryLater(reason, { refused = false, stderr = "" } = {}) {
    // Randomized, so that many pages do not reconnect at the same moment.
    const delayMs = this.#retryMs * (0.75 + Math.random() / 2);
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#open("reconnecting"), delayMs);
    this.#move({ phase: "waiting", reason, refused, stderr, retryAt: Date.now() + delayMs });
  }

  /** @param {string} words */
  #drop(words) {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new Failure(words));
  }

  /** @param {page.ConnectionState} state */
  #move(state) {
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }

  /**
   * @param {string} method
   * @param {any} params
   * @returns {Promise<any>}
   */
  #send(method, params) {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#write({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** @param {any} message */
  #write(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** @param {string} text */
  #receive(text) {
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      console.warn("The bridge sent a message that is not JSON.");
      return;
    }
    if (message.method === undefined) this.#settle(message);
    else if (message.id === undefined) this.#notifyListeners(message);
    else this.#ask(message);
  }

  /** @param {{ id: number, result?: any, error?: acp.Error }} response */
  #settle({ id, result, error }) {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    if (error) waiting.reject(new Failure(error.message, error.code, error.data));
    else waiting.resolve(result);
  }

  /** @param {{ method: string, params?: any }} notification */
  #notifyListeners({ method, params }) {
    for (const fn of this.#listeners.get(method) ?? []) fn(params ?? {});
  }

  /** @param {{ id: acp.RequestId, method: string, params?: any }} request */
  #ask({ id, method, params }) {
    /** @type {page.Answer} */
    const answer = {
      id,
      result: (result) => this.#write({ jsonrpc: "2.0", id, result }),
      error: (code, message) => this.#write({ jsonrpc: "2.0", id, error: { code, message } }),
    };
    const answerer = this.#answerers.get(method);
    if (answerer) answerer(params ?? {}, answer);
    else answer.error(-32601, `The page does not offer ${method}.`);
  }
}
