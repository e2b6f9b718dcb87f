/** A link with which somebody else can read along. */

import { el } from "../dom.js";
import { ask, field } from "./dialog.js";
import { titleOf } from "./row.js";

export async function showShareLink(app, facts) {
  let link;
  try {
    link = await makeLink(app, facts.sessionId);
  } catch (error) {
    app.toast(error.message, "error");
    return;
  }
  const input = el("input", { class: "input share-link", readonly: true, value: link, spellcheck: "false" });
  input.addEventListener("focus", () => input.select());
  await ask({
    title: "Share to read",
    body: [
      el("p", { class: "dialog-words" }, "Whoever opens this link can read all sessions, beginning with ",
        el("strong", { class: "dialog-name", dir: "auto" }, titleOf(facts)), ", and can change nothing. It works once, and not for long."),
      field("Link", input),
    ],
    action: "Copy",
    submit: () => copy(app, input),
  });
}

async function makeLink(app, id) {
  const response = await fetch("./link", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ role: "reader" }),
  }).catch(() => null);
  if (!response) throw new Error("The bridge cannot be reached, so there is no link.");
  if (!response.ok) throw new Error(`The bridge makes no link: ${(await response.text()).slice(0, 300)}`);
  const { path } = await response.json();
  const link = new URL(path, document.baseURI);
  link.hash = [app.agentName ?? "", id].map(encodeURIComponent).join("/");
  return link.href;
}

async function copy(app, input) {
  try {
    await navigator.clipboard.writeText(input.value);
  } catch {
    input.select();
    throw new Error("The browser does not let the page copy. The link is marked: copy it yourself.");
  }
  app.toast("The link was copied.", "info");
}
