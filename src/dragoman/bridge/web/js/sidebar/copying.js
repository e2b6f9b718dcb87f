/** A link that a person copies. */

import { el, icon } from "../page/dom.js";
import { ask, field } from "./dialog.js";

// Names and addresses that mean the machine itself wherever they are opened.
const LOOPBACK = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/;

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
    body: [el("p", { class: "dialog-words" }, words), field("Link", input), hereAlone(new URL(link))],
    action: "Copy",
    leave: "Done",
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

/**
 * The warning beside a link that no other machine can follow.
 *
 * @param {URL} link
 */
function hereAlone({ hostname }) {
  if (!LOOPBACK.test(hostname)) return null;
  const words = `This link works on this machine alone: the bridge listens at ${hostname}, which no phone or other computer reaches. “A team on the network” in the documentation (docs/network.md) says how to change that.`;
  return el("p", { class: "dialog-warning" }, icon("warning"), el("span", {}, words));
}
