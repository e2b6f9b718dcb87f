/** The complete view of one message. */

import { DIRECTIONS, bytes, clock, duration, label } from "./format.js";
import { el, fill, find, iconButton } from "../page/dom.js";
import { visible } from "../text/safe.js";

export class MessageDetail {
  /**
   * `choose(entry)` shows another message. The button calls `close()`.
   *
   * @param {page.App} app
   * @param {{ choose: (entry: page.WireEntry | null) => void, close: () => void }} actions
   */
  constructor(app, { choose, close }) {
    this.app = app;
    this.choose = choose;
    this.close = close;
    this.element = el("section", { class: "wire-detail", "aria-label": "Message", hidden: true });
  }

  /** @param {page.WireEntry | null} entry */
  show(entry) {
    // The focused element is replaced, so move the focus to the view, where Escape closes the message.
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = entry === null;
    if (entry === null) {
      fill(this.element);
      return;
    }
    fill(
      this.element,
      el(
        "header",
        { class: "wire-detail-head" },
        el("h2", { class: "wire-detail-title" }, label(entry)),
        iconButton("copy", "Copy the message", () => this.#copy(entry)),
        iconButton("close", "Close the message", this.close),
      ),
      /** @param {page.WireEntry} entry */
      this.#facts(entry),
      entry.cut ? el("p", { class: "wire-note" }, `Only the first 64 KiB of ${bytes(entry.size)} are kept.`) : null,
      el("pre", { class: "wire-json", tabindex: "0", "aria-label": "Content" }, prettyJson(entry.line)),
    );
    if (hadFocus) find(this.element, ".wire-json")?.focus({ preventScroll: true });
  }

  /** @param {page.WireEntry} entry */
  #facts(entry) {
    const facts = [
      ["Kind", entry.failed && entry.kind === "response" ? "error response" : entry.kind],
      ["Direction", DIRECTIONS[entry.direction] ?? entry.direction],
      ["Time", clock(entry.time)],
      ["Size", bytes(entry.size)],
      ["Duration", duration(entry.latencyMs)],
      ["Id", entry.id === undefined || entry.id === null ? "" : JSON.stringify(entry.id)],
      ["Session", entry.sessionId ?? ""],
    ];
    const list = el("dl", { class: "wire-facts" });
    for (const [name, value] of facts) if (value) list.append(el("div", {}, el("dt", {}, name), el("dd", {}, visible(value))));
    if (entry.partner) list.append(el("div", {}, el("dt", {}, "Matching message"), el("dd", {}, this.#partner(entry))));
    return list;
  }

  /** @param {page.WireEntry} entry */
  #partner(entry) {
    const words = entry.kind === "response" ? "Show the request" : "Show the response";
    return el("button", { type: "button", class: "wire-partner", onclick: () => this.choose(entry.partner) }, words);
  }

  /** @param {page.WireEntry} entry */
  async #copy(entry) {
    try {
      await navigator.clipboard.writeText(laidOut(entry.line));
      this.app.toast("Copied.", "info");
    } catch {
      this.app.toast("The browser did not allow copying. Select the text and copy it yourself.", "error");
    }
  }
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;
// Longer messages would freeze the page.
const MOST_COLOURED = 200_000;

/**
 * JSON as indented, coloured elements. Other text is returned unchanged.
 *
 * @param {string} line
 */
function prettyJson(line) {
  const code = el("code", { class: "json" });
  const text = visible(laidOut(line), { lines: true });
  if (text.length > MOST_COLOURED) {
    code.append(text);
    return code;
  }
  let done = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [whole, string, colon, number, word] = found;
    code.append(text.slice(done, found.index));
    if (string) code.append(el("span", { class: colon ? "json-key" : "json-string" }, string), colon ?? "");
    else code.append(el("span", { class: number ? "json-number" : "json-word" }, number ?? word));
    done = found.index + whole.length;
  }
  code.append(text.slice(done));
  return code;
}

/** @param {string} line */
function laidOut(line) {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line;
  }
}
