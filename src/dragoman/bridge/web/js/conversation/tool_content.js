/** The content of a tool call: output, diffs and pictures. Used by the call and the permission card. */

import { contentElement, relativePath } from "./content.js";
import { DiffView } from "./diff_view.js";
import { el } from "../page/dom.js";
import { MarkdownText } from "../text/markdown.js";
import { Output } from "./output.js";
import { visible } from "../text/safe.js";

// These kinds answer in prose. The others answer with files, lists and output.
const IN_PROSE = new Set(["think", "fetch", "other", "switch_mode"]);
const FENCE = /^(`{3,}|~{3,})[^\n]*\n/;

/**
 * One part of the content. Parts with the same key are versions of the same part.
 *
 * @typedef {{ kind: "diff", key: string, diff: acp.Diff }
 *   | { kind: "block", key: string, block: page.Block }
 *   | { kind: "prose", key: string, text: string }
 *   | { kind: "output", key: string, text: string, fromEnd: boolean }} Part
 */

export class ToolContent {
  /** @type {Array<{ key: string, element: HTMLElement, update?: (part: any) => void }>} */
  #parts = [];
  #cwd;
  #shown;
  #exact;

  /**
   * With `exact`, hidden characters are escaped, because the user agrees to this text.
   *
   * @param {string} cwd
   * @param {{ exact?: boolean }} options
   */
  constructor(cwd, { exact = false } = {}) {
    this.#cwd = cwd;
    this.#exact = exact;
    this.#shown = (/** @type {string} */ text) => (exact ? visible(text, { lines: true }) : text);
    this.element = el("div", { class: "tool-content" });
  }

  /**
   * Show the parts. Update a part in place if its kind is unchanged.
   *
   * @param {Partial<page.Call>} call
   * @param {Map<string, string> | undefined} terminals
   */
  update(call, terminals) {
    const wanted = partsOf(call, terminals);
    wanted.forEach((part, n) => {
      const old = this.#parts[n];
      if (old?.key === part.key) old.update?.(part);
      else this.#put(n, part);
    });
    for (const part of this.#parts.splice(wanted.length)) part.element.remove();
    return wanted.length > 0;
  }

  /**
   * @param {number} n
   * @param {Part} part
   */
  #put(n, part) {
    const made = { key: part.key, ...this.#make(part) };
    if (this.#parts[n]) this.#parts[n].element.replaceWith(made.element);
    else this.element.append(made.element);
    this.#parts[n] = made;
  }

  /**
   * @param {Part} part
   * @returns {{ element: HTMLElement, update?: (part: any) => void }}
   */
  #make(part) {
    if (part.kind === "diff") {
      const canFold = !this.#exact;
      return { element: new DiffView(part.diff, (path) => relativePath(path, this.#cwd), { canFold }).element };
    }
    if (part.kind === "block") return { element: contentElement(part.block) };
    if (part.kind === "prose") return prose(this.#shown(part.text));
    const output = new Output("Output", { fromEnd: part.fromEnd });
    output.update(this.#shown(part.text));
    return { element: output.element, update: ({ text }) => output.update(this.#shown(text)) };
  }
}

/** @param {string} text */
function prose(text) {
  const element = el("div", {});
  const shown = new MarkdownText(element);
  shown.update(text, false);
  return { element };
}

/**
 * @param {Partial<page.Call>} call
 * @param {Map<string, string> | undefined} terminals
 * @returns {Part[]}
 */
function partsOf(call, terminals) {
  const parts = (call.content ?? []).map((part, n) => partOf(part, n, call, terminals)).filter((part) => part !== null);
  // Output without a part in the content is shown as well.
  const named = new Set((call.content ?? []).map((part) => (part.type === "terminal" ? part.terminalId : null)));
  for (const [id, text] of terminals ?? [])
    if (!named.has(id)) parts.push({ kind: "output", key: `terminal ${id}`, text, fromEnd: true });
  return parts;
}

/**
 * @param {acp.ToolCallContent} part
 * @param {number} n
 * @param {Partial<page.Call>} call
 * @param {Map<string, string> | undefined} terminals
 * @returns {Part | null}
 */
function partOf(part, n, call, terminals) {
  if (part.type === "diff") {
    return { kind: "diff", key: JSON.stringify([part.path, part.oldText, part.newText]), diff: part };
  }
  if (part.type === "terminal") {
    const text = terminals?.get(part.terminalId);
    return text === undefined ? null : { kind: "output", key: `terminal ${part.terminalId}`, text, fromEnd: true };
  }
  const block = part.content ?? {};
  if (block.type !== "text") return { kind: "block", key: JSON.stringify(block), block };
  const text = block.text ?? "";
  const code = unfenced(text);
  if (code === null && IN_PROSE.has(call.kind ?? "other") && !text.includes("\x1b"))
    return { kind: "prose", key: text, text };
  return { kind: "output", key: `output ${n}`, text: code ?? text, fromEnd: call.kind === "execute" };
}

/**
 * The inside of a text that is one fenced block and nothing else, or null.
 *
 * @param {string} text
 */
export function unfenced(text) {
  const open = FENCE.exec(text);
  if (!open) return null;
  const bare = text.trimEnd();
  const close = `\n${open[1]}`;
  if (!bare.endsWith(close)) return null;
  const end = Math.max(bare.length - close.length, open[0].length);
  const inside = text.slice(open[0].length, end);
  return inside.includes(close) ? null : inside;
}
