/** A form for an elicitation schema, which is flat: texts, numbers, switches and choices. */

import { el, find } from "../page/dom.js";
import { cleanText, oneLine, visible } from "../text/safe.js";

let nextId = 1;

/** @type {Record<string, { type: string, fits: (text: string) => boolean, words: string }>} */
const FORMATS = {
  email: { type: "email", fits: (text) => /^[^\s@]+@[^\s@]+$/.test(text), words: "an e-mail address" },
  uri: { type: "url", fits: (text) => URL.canParse(text), words: "a URL such as https://example.org" },
  date: { type: "date", fits: (text) => /^\d{4}-\d{2}-\d{2}$/.test(text), words: "a date" },
  "date-time": { type: "datetime-local", fits: (text) => !Number.isNaN(Date.parse(text)), words: "a date with time" },
};

/**
 * A control with its label; `problem` checks a value, `say` shows the problem.
 *
 * @typedef {{ name: string, element: HTMLElement, control: HTMLElement, value: () => any,
 *   problem: (value: any) => string | null, say: (problem: string | null) => void }} Field
 */

/**
 * The control for one property; `focusable` is the first of several.
 *
 * @typedef {{ control: HTMLElement, element: HTMLElement, focusable?: HTMLElement, isGroup?: boolean, isSwitch?: boolean,
 *   value: () => any, problem: (value: any) => string | null }} Control
 */

export class SchemaForm {
  /** @type {Field[]} */
  #fields = [];

  /** @param {acp.ElicitationSchema | undefined} schema */
  constructor(schema) {
    const required = new Set(schema?.required ?? []);
    this.#fields = Object.entries(schema?.properties ?? {}).map(([name, property]) =>
      makeField(name, property ?? {}, required.has(name)),
    );
    this.element = el(
      "div",
      { class: "form" },
      this.#fields.map((field) => field.element),
    );
  }

  focus() {
    find(this.element, "input, select, textarea")?.focus({ preventScroll: true });
  }

  /** The content to send, or null if a value is invalid. The first invalid field gets the focus. */
  read() {
    /** @type {Record<string, acp.ElicitationContentValue>} */
    const content = {};
    /** @type {Field | null} */
    let first = null;
    for (const field of this.#fields) {
      const value = field.value();
      const problem = field.problem(value);
      field.say(problem);
      if (problem) first ??= field;
      if (value !== undefined) content[field.name] = value;
    }
    first?.control.focus();
    return first ? null : content;
  }
}

/**
 * @param {string} name
 * @param {any} property
 * @param {boolean} required
 * @returns {Field}
 */
function makeField(name, property, required) {
  const made = controlFor(property);
  const id = `field-${nextId++}`;
  made.control.id = id;
  const error = el("p", { class: "field-error", id: `${id}-error`, hidden: true });
  const hint = property.description && el("p", { class: "field-hint", id: `${id}-hint` }, cleanText(property.description));
  made.control.setAttribute("aria-describedby", [hint && `${id}-hint`, `${id}-error`].filter(Boolean).join(" "));
  if (required) made.control.setAttribute("aria-required", "true");
  const words = [oneLine(property.title || name), required ? null : el("span", { class: "optional" }, " optional")];
  const say = (/** @type {string | null} */ problem) => {
    error.hidden = !problem;
    error.textContent = problem ?? "";
    made.control.setAttribute("aria-invalid", String(Boolean(problem)));
  };
  const problem = (/** @type {any} */ value) => (value === undefined ? (required ? "This field is required." : null) : made.problem(value));
  const element = made.isGroup
    ? el("fieldset", { class: "field" }, el("legend", { class: "field-label" }, words), hint, made.element, error)
    : made.isSwitch
      ? el(
          "div",
          { class: "field" },
          el("label", { class: "switch", for: id }, made.control, el("span", {}, words[0])),
          hint,
          error,
        )
      : el("div", { class: "field" }, el("label", { class: "field-label", for: id }, words), hint, made.element, error);
  return { name, element, control: made.focusable ?? made.control, value: made.value, problem, say };
}

/**
 * @param {any} property
 * @returns {Control}
 */
function controlFor(property) {
  if (property.type === "boolean") return switchControl(property);
  if (property.type === "number" || property.type === "integer") return numberControl(property);
  if (property.type === "array") return manyControl(property);
  const choices = choicesOf(property);
  return choices ? choiceControl(property, choices) : textControl(property);
}

/**
 * [{value, title, description}] of an enum in any of its forms, or null.
 *
 * @param {any} property
 * @returns {Array<{ value: string, title: string, description?: string | null }> | null}
 */
function choicesOf({ enum: values, enumNames, oneOf, anyOf }) {
  const titled = oneOf ?? anyOf;
  if (Array.isArray(titled))
    return titled.map((one) => shownChoice(one.const, one.title ?? one.const, one.description));
  if (Array.isArray(values)) return values.map((value, n) => shownChoice(value, enumNames?.[n] ?? value));
  return null;
}

/**
 * @param {string} value
 * @param {string} title
 * @param {string | null} [description]
 */
function shownChoice(value, title, description) {
  return { value, title: oneLine(title), description: description && oneLine(description) };
}

/** @param {any} property */
function textControl(property) {
  const format = FORMATS[property.format];
  const isLong = !format && (property.maxLength ?? 0) > 200;
  const control = isLong
    ? el("textarea", { class: "input", rows: "4" })
    : el("input", { class: "input", type: format?.type ?? "text" });
  control.value = property.default ?? "";
  const value = () => {
    if (control.value === "") return undefined;
    return property.format === "date-time" ? new Date(control.value).toISOString() : control.value;
  };
  return { control, element: control, value, problem: (/** @type {string} */ text) => textProblem(text, property, format) };
}

/**
 * @param {string} text
 * @param {acp.StringPropertySchema} property
 * @param {(typeof FORMATS)[string] | undefined} format
 */
function textProblem(text, { minLength, maxLength, pattern }, format) {
  const length = [...text].length;
  if (minLength && length < minLength) return `Enter at least ${minLength} characters.`;
  if (maxLength && length > maxLength) return `Enter at most ${maxLength} characters (now ${length}).`;
  if (format && !format.fits(text)) return `Enter ${format.words}.`;
  if (pattern && !fitsPattern(text, pattern)) return `The value must match the pattern ${visible(pattern)}`;
  return null;
}

/**
 * @param {string} text
 * @param {string} pattern
 */
function fitsPattern(text, pattern) {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

/** @param {any} property */
function numberControl(property) {
  const whole = property.type === "integer";
  const control = el("input", {
    class: "input",
    type: "number",
    step: whole ? "1" : "any",
    min: property.minimum,
    max: property.maximum,
  });
  control.value = property.default ?? "";
  const value = () => (control.value === "" && !control.validity.badInput ? undefined : control.valueAsNumber);
  return { control, element: control, value, problem: (/** @type {number} */ number) => numberProblem(number, property, whole) };
}

/**
 * @param {number} number
 * @param {acp.NumberPropertySchema} property
 * @param {boolean} whole
 */
function numberProblem(number, { minimum, maximum }, whole) {
  if (Number.isNaN(number)) return "Enter a number.";
  if (whole && !Number.isInteger(number)) return "Enter a whole number.";
  if (typeof minimum === "number" && number < minimum) return `The value must be at least ${minimum}.`;
  if (typeof maximum === "number" && number > maximum) return `The value must be at most ${maximum}.`;
  return null;
}

/** @param {any} property */
function switchControl(property) {
  const control = el("input", { type: "checkbox", role: "switch" });
  control.checked = property.default === true;
  return { control, element: control, isSwitch: true, value: () => control.checked, problem: () => null };
}

/**
 * @param {any} property
 * @param {Array<{ value: string, title: string, description?: string | null }>} choices
 */
function choiceControl(property, choices) {
  const none = el("option", { value: "" }, "Choose…");
  const options = choices.map(({ title, description }, n) =>
    el("option", { value: n }, description ? `${title}: ${description}` : title),
  );
  const control = el("select", { class: "input" }, none, options);
  const chosen = choices.findIndex((choice) => choice.value === property.default);
  control.value = chosen >= 0 ? String(chosen) : "";
  const value = () => (control.value === "" ? undefined : choices[Number(control.value)].value);
  return { control, element: control, value, problem: () => null };
}

/** @param {any} property */
function manyControl(property) {
  const choices = choicesOf(property.items ?? {}) ?? [];
  const chosen = new Set(property.default ?? []);
  const boxes = choices.map(({ value }) => {
    const box = el("input", { type: "checkbox" });
    box.checked = chosen.has(value);
    return box;
  });
  const control = el(
    "div",
    { class: "many", role: "group" },
    choices.map(({ title }, n) => el("label", { class: "switch" }, boxes[n], el("span", {}, title))),
  );
  const value = () => {
    const values = choices.filter((_, n) => boxes[n].checked).map((choice) => choice.value);
    return values.length ? values : property.minItems === 0 || property.default ? [] : undefined;
  };
  return {
    control,
    element: control,
    focusable: boxes[0] ?? control,
    isGroup: true,
    value,
    problem: (/** @type {string[]} */ values) => countProblem(values.length, property),
  };
}

/**
 * @param {number} length
 * @param {acp.MultiSelectPropertySchema} property
 */
function countProblem(length, { minItems, maxItems }) {
  if (minItems && length < minItems) return `Choose at least ${minItems}.`;
  if (maxItems && length > maxItems) return `Choose at most ${maxItems}.`;
  return null;
}
