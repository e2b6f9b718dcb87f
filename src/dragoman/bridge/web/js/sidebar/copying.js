/** A link that a person copies. */

import { el } from "../page/dom.js";
import { ask, field } from "./dialog.js";

/**
 * Show a link, with a button that copies it.
 *
 * @param {page.App} app
 * @param {{ title: string, words: string, link: string, copied: string }} shown
 */
export async function showLink(app, { title, words, link, copied }) {
  const input = el("input", { class: "input share-link", readonly: true, value: link, spellcheck: "false" });
  input.addEventListener("focus", () => input.select());
  await ask({
    title,
    body: [el("p", { class: "dialog-words" }, words), field("Link", input)],
    action: "Copy",
    submit: async () => {
      try {
        await navigator.clipboard.writeText(input.value);
      } catch {
        input.select();
        throw new Error("The browser does not let the page copy. The link is marked: copy it yourself.");
      }
      app.toast(copied, "info");
    },
  });
}
