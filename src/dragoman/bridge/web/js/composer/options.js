/** The pickers for the agent's options, such as mode and model, as selects and switches. */

import { el, fill, find } from "../page/dom.js";
import { cleanText, oneLine } from "../text/safe.js";
import { explain } from "../connection/failure.js";

// The value of an entry that is not from the agent.
const CONNECT = "dragoman/connect";

export class Options {
  #root;
  /** @type {page.App} */
  #app;
  /** @type {string | null} */
  #drawn = null;

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#root = root;
    this.#app = app;
    app.state.addEventListener("session", () => this.#draw());
    app.state.addEventListener("connection", () => this.#draw());
    this.#draw();
  }

  #draw() {
    const { session, connection } = this.#app.state;
    const options = session ? optionsOf(session) : [];
    const isOff = connection.phase !== "open" || this.#app.readOnly || session?.phase !== "ready";
    const key = JSON.stringify([session?.id, options, isOff, this.#canConnect]);
    if (key === this.#drawn) return;
    // A list that the user has just opened must not close.
    const active = document.activeElement;
    const focused = active instanceof HTMLElement && this.#root.contains(active) ? active.dataset.option : null;
    this.#drawn = key;
    fill(
      this.#root,
      options.map((option) => this.#control(option, isOff)),
    );
    if (focused) find(this.#root, `[data-option="${CSS.escape(focused)}"]`)?.focus();
  }

  get #canConnect() {
    return Boolean(this.#app.introductions.methods);
  }

  /**
   * @param {page.Option} option
   * @param {boolean} isOff
   */
  #control(option, isOff) {
    return option.type === "boolean" ? this.#switch(option, isOff) : this.#select(option, isOff);
  }

  /**
   * @param {Extract<page.Option, { type: "boolean" }>} option
   * @param {boolean} isOff
   */
  #switch(option, isOff) {
    const box = el("input", { type: "checkbox", role: "switch", disabled: isOff, dataset: { option: option.id } });
    box.checked = option.currentValue === true;
    box.addEventListener("change", () => this.#set(option, box.checked));
    return el("label", { class: "switch option", title: cleanText(option.description ?? "") }, box, el("span", {}, oneLine(option.name)));
  }

  /**
   * @param {Extract<page.Option, { type: "select" }>} option
   * @param {boolean} isOff
   */
  #select(option, isOff) {
    const offersModel = option.category === "model" && this.#canConnect;
    const only = choicesOf(option).length < 2 && !offersModel;
    const select = el(
      "select",
      {
        class: "picker",
        "aria-label": oneLine(option.name),
        title: titleOf(option),
        disabled: isOff || only,
        dataset: { option: option.id },
      },
      option.options.map((one) =>
        "options" in one ? el("optgroup", { label: oneLine(one.name) }, one.options.map(choice)) : choice(one),
      ),
      offersModel && [el("hr"), el("option", { value: CONNECT }, "Connect a model…")],
    );
    select.value = option.currentValue;
    select.addEventListener("change", () => {
      if (select.value !== CONNECT) return this.#set(option, select.value);
      select.value = option.currentValue;
      return this.#app.introductions.openConnect();
    });
    return el("span", { class: "option" }, select);
  }

  /**
   * @param {page.Option} option
   * @param {any} value
   */
  async #set(option, value) {
    const { session } = this.#app.state;
    if (!session) return;
    try {
      if (option.isMode) await session.setMode(value);
      else await session.setOption(option, value);
    } catch (error) {
      this.#app.toast(`${oneLine(option.name)} was not changed: ${explain(error)}`, "error");
      this.#drawn = null;
      this.#draw();
    }
  }
}

/**
 * If an agent offers both config options and modes, use the config options.
 *
 * @param {page.Session} session
 * @returns {page.Option[]}
 */
function optionsOf({ transcript }) {
  const { configOptions, modes } = transcript;
  const known = (configOptions ?? []).filter((option) => option.type === "boolean" || Array.isArray(option.options));
  if (known.length > 0 || !modes?.availableModes?.length) return known;
  const options = modes.availableModes.map(({ id, name, description }) => ({ value: id, name, description }));
  return [{ id: "mode", name: "Mode", type: "select", isMode: true, currentValue: modes.currentModeId, options }];
}

/** @param {acp.SessionConfigSelectOption} option */
function choice({ value, name, description }) {
  return el("option", { value, title: description && cleanText(description) }, oneLine(name));
}

/**
 * @param {Extract<page.Option, { type: "select" }>} option
 * @returns {acp.SessionConfigSelectOption[]}
 */
function choicesOf(option) {
  return option.options.flatMap((one) => ("options" in one ? one.options : [one]));
}

/** @param {Extract<page.Option, { type: "select" }>} option */
function titleOf(option) {
  const current = choicesOf(option).find((one) => one.value === option.currentValue);
  return [option.name, option.description, current?.description].filter(Boolean).map(cleanText).join("\n");
}
