/** Modal dialogs with a form. */

import { explain } from "../connection/failure.js";
import { el } from "../page/dom.js";

/**
 * Show a form as a dialog. `submit()` may throw a Failure or an Error with a message for the user: it is shown and
 * the dialog stays. Resolves to the result of `submit`, or to null if the user left or `signal` was aborted.
 *
 * @template Result
 * @param {{ title: string, body: page.Child, action: string, leave?: string, danger?: boolean, signal?: AbortSignal, submit: () => Promise<Result> | Result }} asked
 * @returns {Promise<Result | null>}
 */
export function ask({ title, body, action, leave = "Cancel", danger = false, signal, submit }) {
  return new Promise((resolve) => {
    const problem = el("p", { class: "field-error dialog-problem", role: "alert" });
    const confirm = el("button", { type: "submit", class: `button ${danger ? "button-danger" : "button-primary"}` }, action);
    const cancel = el("button", { type: "button", class: "button" }, leave);
    const form = el("form", { class: "dialog-form", novalidate: true }, ...[body].flat(), problem,
      el("div", { class: "dialog-actions" }, cancel, confirm));
    const heading = el("h2", { class: "dialog-title", id: "dialog-title" }, title);
    const dialog = el("dialog", { "aria-labelledby": "dialog-title" }, heading, form);
    cancel.addEventListener("click", () => dialog.close());
    /** @type {{ value: any } | null} */
    let answer = null;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      problem.textContent = "";
      confirm.disabled = true;
      try {
        answer = { value: await submit() };
        dialog.close();
      } catch (error) {
        problem.textContent = explain(error);
      } finally {
        confirm.disabled = false;
      }
    });
    // A field that is being corrected is no longer marked as invalid.
    form.addEventListener("input", ({ target }) => {
      problem.textContent = "";
      if (target instanceof Element) target.removeAttribute("aria-invalid");
    });
    const leaveNow = () => dialog.close();
    signal?.addEventListener("abort", leaveNow);
    dialog.addEventListener("close", () => {
      signal?.removeEventListener("abort", leaveNow);
      dialog.remove();
      resolve(answer ? answer.value : null);
    });
    document.body.append(dialog);
    dialog.showModal();
    if (signal?.aborted) dialog.close();
    // Enter must not press the delete button.
    if (danger) cancel.focus();
  });
}

let fields = 0;

/**
 * A control with a label above and an optional hint below.
 *
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string | null} hint
 */
export function field(label, control, hint = null) {
  const id = `field-${(fields += 1)}`;
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return el("div", { class: "field" }, el("label", { class: "field-label", for: id }, label), control,
    hint && el("p", { class: "field-hint", id: `${id}-hint` }, hint));
}
