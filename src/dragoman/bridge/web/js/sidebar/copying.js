/** The dialog with a link to copy. */

import { el, icon } from "../page/dom.js";
import { ask, field } from "./dialog.js";

// Names and addresses that always mean the local machine.
const LOOPBACK = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/;

/**
 * Show a link with a copy button, until the user closes the dialog or `signal` aborts because the link was used.
 *
 * @param {page.App} app
 * @param {{ title: string, words: string, link: string, copied: string, signal?: AbortSignal }} shown
 */
export async function showLink(app, { title, words, link, copied, signal }) {
  const input = el("input", { class: "input share-link", readonly: true, value: link, spellcheck: "false" });
  input.addEventListener("focus", () => input.select());
  await ask({
    title,
    body: [el("p", { class: "dialog-words" }, words), field("Link", input), hereAlone(new URL(link))],
    action: "Copy",
    leave: "Done",
    signal,
    submit: async () => {
      try {
        await navigator.clipboard.writeText(input.value);
      } catch {
        input.select();
        throw new Error("The browser did not allow copying. The link is selected: copy it yourself.");
      }
      app.toast(copied, "info");
    },
  });
}

/**
 * The warning for a link that does not work on other machines.
 *
 * @param {URL} link
 */
function hereAlone({ hostname }) {
  if (!LOOPBACK.test(hostname)) return null;
  const words = `This link works only on this machine: the bridge listens on ${hostname}, which other devices cannot reach. “A team on the network” in the documentation (docs/network.md) says how to change that.`;
  return el("p", { class: "dialog-warning" }, icon("warning"), el("span", {}, words));
}
