/** The complete command or change of a tool call, for a permission request. */

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
  const changed = changesOf(call).map(({ path }) => path);
  const others = (call.locations ?? []).filter(({ path }) => !changed.includes(path));
  const places = others.map(({ path, line }) =>
    el("span", { class: "chip", title: visible(path) }, visible(relativePath(path, cwd)) + (line ? `:${line}` : "")),
  );
  if (places.length) box.append(el("div", { class: "tool-places" }, places));
  return box;
}

/**
 * The heading of a question. The command or file is shown below, so it is not repeated here. A title with more
 * information is kept.
 *
 * @param {Partial<page.Call>} call
 */
export function heading(call) {
  const title = visible(call.title || "");
  const words = title.replaceAll("`", "");
  const command = commandOf(call);
  if (command !== null && (repeats(words, visible(command)) || isBeginning(words, visible(command)))) return "Run this command";
  const changes = changesOf(call);
  if (changes.some(({ path }) => repeats(words, visible(nameOf(path))))) return changes.length > 1 ? "Change these files" : "Change this file";
  return title || "Run a tool";
}

/**
 * Whether a title only repeats the text below, with at most a word such as "Run" or "Edit".
 *
 * @param {string} title
 * @param {string} below
 */
function repeats(title, below) {
  const at = title.lastIndexOf(below);
  const [before, after] = [title.slice(0, at), title.slice(at + below.length)];
  if (at < 0 || /[\p{L}\p{N}_]$/u.test(before) || /^[\p{L}\p{N}_]/u.test(after)) return false;
  // The directories before a file name do not count as words.
  const beside = `${before.replace(/\S*[\\/]$/, "")} ${after}`.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  return beside.length <= 1;
}

/**
 * Whether a title is a truncated command, perhaps after "Run".
 *
 * @param {string} title
 * @param {string} command
 */
function isBeginning(title, command) {
  const cut = /^(?:Run\s+)?(.+?)\s*(?:…|\.\.\.)$/.exec(title);
  return cut !== null && command.startsWith(cut[1]);
}

/** @param {Partial<page.Call>} call */
function changesOf({ content }) {
  return (content ?? []).flatMap((part) => (part.type === "diff" ? [part] : []));
}

/** @param {string} path */
function nameOf(path) {
  return path.split(/[\\/]/).at(-1) || path;
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
 * Whether the content contains the command, unchanged or with hidden characters escaped.
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
 * The text that the user agrees to: unchanged lines with hidden characters escaped.
 *
 * @param {string} text
 */
function shown(text) {
  return visible(text, { lines: true });
}
