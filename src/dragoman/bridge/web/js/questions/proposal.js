/** What a tool call will do, for a person who is asked to allow it: the whole command, the whole change. */

import { relativePath } from "../conversation/content.js";
import { ToolContent } from "../conversation/tool_content.js";
import { el } from "../page/dom.js";
import { visible } from "../text/safe.js";

/**
 * @param {Partial<page.Call>} call
 * @param {Map<string, string> | undefined} terminals
 * @param {string} cwd
 */
export function detail(call, terminals, cwd) {
  const box = el("div", { class: "question-detail" });
  const command = commandOf(call);
  const content = new ToolContent(cwd, { exact: true });
  const shows = content.update(call, terminals);
  if (command !== null && !saysCommand(call, command))
    box.append(el("pre", { class: "question-command", tabindex: "0" }, shown(command)));
  if (shows) box.append(content.element);
  if (command === null && !shows && call.rawInput !== undefined) {
    box.append(el("pre", { class: "question-command", tabindex: "0" }, shown(JSON.stringify(call.rawInput, null, 2))));
  }
  const places = (call.locations ?? []).map(({ path, line }) =>
    el("span", { class: "chip", title: visible(path) }, visible(relativePath(path, cwd)) + (line ? `:${line}` : "")),
  );
  if (places.length) box.append(el("div", { class: "tool-places" }, places));
  return box;
}

/** @param {Partial<page.Call>} call */
function commandOf({ kind, rawInput }) {
  if (kind !== "execute" || rawInput === null || typeof rawInput !== "object") return null;
  const { command, args } = rawInput;
  if (Array.isArray(command)) return command.join(" ");
  if (typeof command !== "string") return null;
  return Array.isArray(args) ? [command, ...args].join(" ") : command;
}

/**
 * Whether the content has the command, as it is or with hidden characters written out.
 *
 * @param {Partial<page.Call>} call
 * @param {string} command
 */
function saysCommand({ content }, command) {
  const texts = (content ?? []).flatMap((part) =>
    part.type === "content" && part.content?.type === "text" ? [part.content.text] : [],
  );
  return texts.some((text) => text.includes(command) || text.includes(shown(command)));
}

/**
 * The text that a person agrees to: its lines as they are, with hidden characters written out.
 *
 * @param {string} text
 */
function shown(text) {
  return visible(text, { lines: true });
}
