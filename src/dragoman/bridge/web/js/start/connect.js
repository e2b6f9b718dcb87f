/**
 * The dialog that connects a model: what was found here, one click each; else a provider with its key, or a server by
 * its address. The agent asks the model one question, and keeps the key only when it is answered.
 */

import { el, fill, find, icon, iconButton } from "../page/dom.js";
import { explain, sentence } from "../connection/failure.js";
import { field } from "../sidebar/dialog.js";
import { cleanText, oneLine, visible } from "../text/safe.js";

const COMPATIBLE = "compatible";
const OLLAMA = "ollama";

// A name, an address or a key is no prose.
const PLAIN = { spellcheck: "false", autocapitalize: "off", autocomplete: "off" };

/** @param {page.App} app */
export function openConnect(app) {
  const dialog = new ConnectDialog(app);
  dialog.open();
}

class ConnectDialog {
  /** @type {page.App} */
  #app;
  #body = el("div", { class: "connect-body" });
  #found = el("div", { class: "offers", "aria-live": "polite" });
  #provider = el("select", { class: "input" });
  #model = el("input", { class: "input", ...PLAIN });
  #key = el("input", { class: "input", type: "password", ...PLAIN, autocomplete: "new-password" });
  #address = el("input", { class: "input", placeholder: "http://127.0.0.1:1234/v1", inputmode: "url", ...PLAIN });
  #submit = el("button", { type: "submit", class: "button button-primary" }, "Test and use");
  #result = el("div", { class: "connect-result", role: "status" });
  #addressField;
  #keyField;
  #element;
  /** @type {bridge.ProviderOffer[]} */
  #providers = [];
  #isBusy = false;

  /** @param {page.App} app */
  constructor(app) {
    this.#app = app;
    this.#addressField = field("Address", this.#address, "Of an OpenAI-compatible server: vLLM, llama.cpp, LM Studio, a gateway …");
    this.#keyField = field("Key", this.#key, "Kept in a file that only you can read, as dragoman login keeps it.");
    const form = el(
      "form",
      { class: "dialog-form connect-form", novalidate: true, autocomplete: "off" },
      field("Provider", this.#provider),
      this.#addressField,
      field("Model", this.#model, "Its name at the provider; a server's first model if you leave it empty."),
      this.#keyField,
      this.#result,
      el("div", { class: "dialog-actions" }, this.#submit),
    );
    fill(this.#body, this.#found, el("h3", {}, "With a key or an address"), form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.#addressField.hidden && !this.#address.value.trim()) return this.#address.focus();
      this.#connect(this.#wish());
    });
    this.#provider.addEventListener("change", () => this.#drawForm());
    const close = iconButton("close", "Close", () => this.#element.close(), { class: "connect-close" });
    this.#element = el(
      "dialog",
      { class: "connect", "aria-labelledby": "connect-title" },
      el("h2", { class: "dialog-title", id: "connect-title" }, "Connect a model"),
      close,
      this.#body,
    );
    // A key must not outlive the dialog.
    this.#element.addEventListener("close", () => {
      this.#key.value = "";
      this.#element.remove();
    });
  }

  open() {
    document.body.append(this.#element);
    fill(this.#found, el("p", { class: "offers-none" }, el("span", { class: "spinner" }), " Looking at what is here…"));
    this.#element.showModal();
    this.#look();
  }

  async #look() {
    const methods = this.#app.introductions.methods;
    if (!methods) return;
    try {
      const offers = await this.#app.connection.request(methods.offers, {});
      const chosen = this.#provider.value;
      this.#providers = offers.providers;
      fill(
        this.#provider,
        offers.providers.map(({ id, title }) => el("option", { value: id }, oneLine(title))),
        el("option", { value: COMPATIBLE }, "OpenAI-compatible server"),
        el("option", { value: OLLAMA }, "Ollama at another address"),
      );
      if (chosen) this.#provider.value = chosen;
      this.#drawForm();
      this.#drawOffers(offers);
    } catch (error) {
      fill(this.#found, el("p", { class: "bad" }, cleanText(explain(error))));
    }
  }

  /** The button for it is drawn anew, or gone: the focus stays in the form. */
  async #lookAgain() {
    await this.#look();
    (find(this.#result, ".connect-after button") ?? this.#provider).focus();
  }

  #drawForm() {
    const chosen = this.#provider.value;
    const isServer = chosen === COMPATIBLE || chosen === OLLAMA;
    const provider = this.#providers.find(({ id }) => id === chosen);
    this.#addressField.hidden = !isServer;
    this.#keyField.hidden = chosen === OLLAMA;
    this.#model.value = provider?.model ?? "";
    this.#key.placeholder = provider?.variable ? `the one in ${provider.variable}` : provider?.kept ? "the one that is kept" : "";
    // A server by its address is asked by the library of OpenAI.
    const needed = isServer ? this.#providers.find(({ id }) => id === "openai") : provider;
    this.#submit.disabled = Boolean(needed?.problem);
    if (needed?.install) this.#drawInstall(isServer ? "A server by its address" : needed.title, needed.install, needed.restarts);
    else this.#say("bad", sentence(needed?.problem));
  }

  /**
   * How a library is installed that a choice needs.
   *
   * @param {string} title
   * @param {string} command
   * @param {boolean} restarts
   */
  #drawInstall(title, command, restarts = false) {
    const copy = iconButton("copy", "Copy the command", () => this.#copy(command));
    const again = el("button", { type: "button", class: "button", onclick: () => this.#lookAgain() }, icon("refresh"), "Look again");
    const after = restarts ? "That starts dragoman anew, with the library." : "Nothing has to be restarted: look again afterwards.";
    fill(
      this.#result,
      el("p", {}, `${oneLine(title)} needs a library that is not installed yet. In a terminal on the bridge's machine:`),
      el("div", { class: "connect-command" }, el("code", { tabindex: "0" }, visible(command)), copy),
      el("div", { class: "connect-after" }, el("span", {}, after), !restarts && again),
    );
  }

  /** @param {string} command */
  async #copy(command) {
    try {
      await navigator.clipboard.writeText(command);
      this.#app.toast("The command is copied.", "info");
    } catch {
      this.#app.toast("The browser does not let the page copy. Mark the command and copy it yourself.", "error");
    }
  }

  /** @returns {bridge.ModelWish} */
  #wish() {
    const chosen = this.#provider.value;
    const isServer = chosen === COMPATIBLE || chosen === OLLAMA;
    return {
      provider: isServer ? "openai" : chosen,
      model: this.#model.value.trim(),
      ...(isServer && { baseUrl: this.#address.value.trim() }),
      ...(chosen !== OLLAMA && this.#key.value.trim() && { apiKey: this.#key.value.trim() }),
    };
  }

  /** @param {bridge.Offers} offers */
  #drawOffers({ providers, servers, agents, chosen }) {
    const rows = [
      ...providers.filter((one) => (one.variable || one.kept) && one.model && !one.problem).map((one) => this.#providerRow(one)),
      ...servers.map((server) => this.#serverRow(server)),
      ...agents.map((agent) => this.#agentRow(agent)),
      chosen.model && chosen.model.name !== "guide" && this.#guideRow(),
    ].filter((row) => row instanceof HTMLElement);
    const none = el("p", { class: "offers-none" }, "No key in the environment, no model server and no other agent was found on this machine.");
    fill(this.#found, el("h3", {}, "Found on this machine"), rows.length > 0 ? el("ul", {}, rows) : none);
  }

  /** @param {bridge.ProviderOffer} provider */
  #providerRow({ id, title, model, variable }) {
    const source = variable ? `with the key in ${variable}` : "with the key that is kept";
    return offerRow(`${title}: ${model}`, source, "Use", () => this.#connect({ provider: id, model }));
  }

  /** @param {bridge.ModelServer} server */
  #serverRow({ title, url, models }) {
    const isOllama = url === "http://127.0.0.1:11434/v1";
    const select = el("select", { class: "picker", "aria-label": `Model of ${oneLine(title)}` }, models.map((name) => el("option", { value: name }, oneLine(name))));
    const use = () =>
      this.#connect(isOllama ? { provider: OLLAMA, model: select.value } : { provider: "openai", model: select.value, baseUrl: url });
    return offerRow(title, url, "Use", use, models.length > 1 ? select : el("span", { class: "offer-model" }, oneLine(models[0])));
  }

  /** @param {bridge.InstalledAgent} agent */
  #agentRow({ name, title, command, problem }) {
    if (problem || !command?.length) return offerRow(title, sentence(problem ?? ""), null, () => {});
    const served = this.#app.config.agents.some((one) => one.name === name);
    const called = [command[0].split("/").at(-1), ...command.slice(1)].join(" ");
    const words = served ? `another agent: ${called}` : `another agent, by dragoman serve -- ${called}`;
    return offerRow(title, words, served ? "Talk with it" : null, () => this.#chooseAgent(name));
  }

  #guideRow() {
    return offerRow("guide", "no language model: fixed rules, no key", "Use", () => this.#connect({ provider: "guide" }));
  }

  /** @param {string} name */
  async #chooseAgent(name) {
    const methods = this.#app.introductions.methods;
    if (!methods) return;
    try {
      await this.#app.connection.request(methods.chooseAgent, { agent: name });
      this.#element.close();
      this.#app.chooseAgent(name);
    } catch (error) {
      this.#say("bad", explain(error));
    }
  }

  /** @param {bridge.ModelWish} wish */
  async #connect(wish) {
    const { introductions, state, connection, config } = this.#app;
    const methods = introductions.methods;
    if (!methods || this.#isBusy) return;
    this.#setBusy(true);
    fill(this.#result, el("span", { class: "spinner" }), " Asking the model one question…");
    const place = state.session ? { sessionId: state.session.id } : { cwd: config.cwd };
    try {
      const told = await connection.request(methods.connect, { ...wish, ...place });
      if (told.problem) this.#say("bad", sentence(told.problem));
      else this.#connected(told);
    } catch (error) {
      this.#say("bad", sentence(explain(error)));
    } finally {
      this.#setBusy(false);
    }
  }

  /** @param {bridge.Connected} told */
  #connected({ model, answer, durationMs, countsBefore }) {
    this.#key.value = "";
    this.#app.introductions.forget();
    const time = durationMs ? ` in ${(durationMs / 1000).toFixed(1)} s` : "";
    fill(
      this.#body,
      el(
        "div",
        { class: "connect-done", role: "status" },
        icon("check"),
        el(
          "div",
          {},
          el("p", {}, el("strong", {}, oneLine(model ?? "")), answer ? ` answered${time}:` : " answers from now on."),
          answer && el("blockquote", {}, cleanText(answer)),
          el("p", {}, countsBefore ? `New sessions begin with another one: ${cleanText(countsBefore)}.` : "It is used from now on."),
        ),
        el("button", { type: "button", class: "button button-primary", onclick: () => this.#element.close() }, "Done"),
      ),
    );
    this.#body.querySelector("button")?.focus();
  }

  /** @param {boolean} isBusy */
  #setBusy(isBusy) {
    this.#isBusy = isBusy;
    for (const button of this.#element.querySelectorAll("button")) {
      if (!button.classList.contains("connect-close")) button.disabled = isBusy;
    }
  }

  /**
   * @param {string} kind
   * @param {string} words
   */
  #say(kind, words) {
    fill(this.#result, words && el("p", { class: kind }, cleanText(words)));
  }
}

/**
 * @param {string} title
 * @param {string} words
 * @param {string | null} action
 * @param {() => void} use
 * @param {page.Child} more
 */
function offerRow(title, words, action, use, more = null) {
  const label = `${action}: ${oneLine(title)}`;
  return el(
    "li",
    { class: "offer" },
    el("div", { class: "offer-words" }, el("strong", {}, oneLine(title)), el("span", {}, cleanText(words))),
    more,
    action && el("button", { type: "button", class: "button", "aria-label": label, onclick: use }, action),
  );
}
