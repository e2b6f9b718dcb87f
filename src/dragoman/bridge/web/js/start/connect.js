/**
 * The dialog that connects a model: a local one with one click, a provider with its key, or a server by
 * its URL. The agent tests the model with one question and stores the key only if the model answers.
 */

import { el, fill, find, icon, iconButton } from "../page/dom.js";
import { explain, sentence } from "../connection/failure.js";
import { field } from "../sidebar/dialog.js";
import { cleanText, oneLine, visible } from "../text/safe.js";

const COMPATIBLE = "compatible";
const OLLAMA = "ollama";

// No spell checking or capitals for names, URLs and keys.
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
  // The user may search again before an answer arrives. Only the answer to the newest search counts.
  #looks = 0;
  // The shown missing library. An unchanged result is not redrawn, because a button that is replaced under the
  // pointer receives no click.
  #install = "";

  /** @param {page.App} app */
  constructor(app) {
    this.#app = app;
    this.#addressField = field("Address", this.#address, "URL of an OpenAI-compatible server: vLLM, llama.cpp, LM Studio, a gateway …");
    this.#keyField = field("Key", this.#key, "Stored in a file only you can read, as with dragoman login.");
    const form = el(
      "form",
      { class: "dialog-form connect-form", novalidate: true, autocomplete: "off" },
      field("Provider", this.#provider),
      this.#addressField,
      field("Model", this.#model, "The provider's name for the model."),
      this.#keyField,
      this.#result,
      el("div", { class: "dialog-actions" }, this.#submit),
    );
    fill(this.#body, this.#found, el("h3", {}, "Enter a key or an address"), form);
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
    fill(this.#found, el("p", { class: "offers-none" }, el("span", { class: "spinner" }), " Checking this machine…"));
    this.#element.showModal();
    this.#look();
  }

  /** Search for models. Returns false if a newer search replaced this one. */
  async #look() {
    const methods = this.#app.introductions.methods;
    if (!methods) return false;
    const look = (this.#looks += 1);
    try {
      const offers = await this.#app.connection.request(methods.offers, {});
      if (look !== this.#looks) return false;
      const chosen = this.#provider.value;
      const model = this.#model.value;
      this.#providers = offers.providers;
      fill(
        this.#provider,
        offers.providers.map(({ id, title }) => el("option", { value: id }, oneLine(title))),
        el("option", { value: COMPATIBLE }, "OpenAI-compatible server"),
        el("option", { value: OLLAMA }, "Ollama at another address"),
      );
      if (chosen) this.#provider.value = chosen;
      this.#drawForm();
      if (model) this.#model.value = model; // The user may have typed it during the search.
      this.#drawOffers(offers);
    } catch (error) {
      if (look !== this.#looks) return false;
      fill(this.#found, el("p", { class: "bad" }, cleanText(explain(error))));
    }
    return true;
  }

  /** Keep the focus in the form, because the pressed button may be gone. */
  async #lookAgain() {
    if (!(await this.#look())) return;
    (find(this.#result, ".connect-after button") ?? this.#provider).focus();
  }

  #drawForm() {
    const chosen = this.#provider.value;
    const isServer = chosen === COMPATIBLE || chosen === OLLAMA;
    const provider = this.#providers.find(({ id }) => id === chosen);
    this.#addressField.hidden = !isServer;
    this.#keyField.hidden = chosen === OLLAMA;
    this.#model.value = provider?.model ?? "";
    this.#model.placeholder = isServer ? "the server's first model" : "";
    this.#key.placeholder = provider?.variable ? `the key in ${provider.variable}` : provider?.kept ? "the stored key" : "";
    // A server at a URL is used through OpenAI's library.
    const needed = isServer ? this.#providers.find(({ id }) => id === "openai") : provider;
    this.#submit.disabled = Boolean(needed?.problem);
    if (needed?.install) this.#drawInstall(isServer ? "An OpenAI-compatible server" : needed.title, needed.install, needed.restarts);
    else this.#say("bad", sentence(needed?.problem));
  }

  /**
   * The install instructions for a missing library.
   *
   * @param {string} title
   * @param {string} command
   * @param {boolean} restarts
   */
  #drawInstall(title, command, restarts = false) {
    const key = JSON.stringify([title, command, restarts]);
    if (key === this.#install) return;
    const copy = iconButton("copy", "Copy the command", () => this.#copy(command));
    const again = el("button", { type: "button", class: "button", onclick: () => this.#lookAgain() }, icon("refresh"), "Check again");
    this.#install = key;
    const after = restarts ? "This starts dragoman again with the library installed." : "No restart is needed. Check again afterwards.";
    fill(
      this.#result,
      el("p", {}, `${oneLine(title)} needs a library that is not installed. Run this in a terminal on the bridge's machine:`),
      el("div", { class: "connect-command" }, el("code", { tabindex: "0" }, visible(command)), copy),
      el("div", { class: "connect-after" }, el("span", {}, after), !restarts && again),
    );
  }

  /** @param {string} command */
  async #copy(command) {
    try {
      await navigator.clipboard.writeText(command);
      this.#app.toast("Command copied.", "info");
    } catch {
      this.#app.toast("The browser did not allow copying. Select the command and copy it yourself.", "error");
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
    const none = el("p", { class: "offers-none" }, "No API key, model server or other agent was found on this machine.");
    fill(this.#found, el("h3", {}, "Found on this machine"), rows.length > 0 ? el("ul", {}, rows) : none);
  }

  /** @param {bridge.ProviderOffer} provider */
  #providerRow({ id, title, model, variable }) {
    const source = variable ? `with the key in ${variable}` : "with the stored key";
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
    const words = served ? `another agent: ${called}` : `another agent: start it with dragoman serve -- ${called}`;
    return offerRow(title, words, served ? "Open" : null, () => this.#chooseAgent(name));
  }

  #guideRow() {
    return offerRow("guide", "not a language model: fixed rules, no key needed", "Use", () => this.#connect({ provider: "guide" }));
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
    this.#install = "";
    fill(this.#result, el("span", { class: "spinner" }), " Testing the model…");
    const place = state.session ? { sessionId: state.session.id } : { cwd: config.cwd };
    try {
      const result = await connection.request(methods.connect, { ...wish, ...place });
      if (result.problem) this.#say("bad", sentence(result.problem));
      else this.#connected(result);
    } catch (error) {
      this.#say("bad", sentence(explain(error)));
    } finally {
      this.#setBusy(false);
    }
  }

  /** @param {bridge.Connected} result */
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
          el("p", {}, el("strong", {}, oneLine(model ?? "")), answer ? ` answered${time}:` : " is now used."),
          answer && el("blockquote", {}, cleanText(answer)),
          el("p", {}, countsBefore ? `New sessions still start with another model: ${cleanText(countsBefore)}.` : "It is used for new messages."),
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
    this.#install = "";
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
