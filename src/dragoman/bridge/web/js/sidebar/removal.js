/** Deleting a session, after a look at which one it is. */

import { el } from "../dom.js";
import { explain } from "../failure.js";
import { ask } from "./dialog.js";
import { titleOf } from "./row.js";

/** Resolves to true when it was deleted. */
export async function confirmDelete(app, facts) {
  const words = facts.state === "running" ? " It is running and will be stopped." : "";
  const done = await ask({
    title: "Delete this session?",
    body: el("p", {}, el("strong", { class: "dialog-name", dir: "auto" }, titleOf(facts)), ` will be gone for everybody, with all that was said in it.${words}`),
    action: "Delete",
    danger: true,
    submit: () => remove(app, facts.sessionId),
  });
  if (done) app.announce("The session was deleted.");
  return done === true;
}

async function remove(app, id) {
  try {
    await app.deleteSession(id);
    return true;
  } catch (error) {
    throw new Error(explain(error));
  }
}
