/** JSON in colours, laid out, as elements; a text that is no JSON as it is. */

import { el } from "../dom.js";

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;
// More would freeze the page for longer than anybody looks at it.
const MOST_COLOURED = 200_000;

export function prettyJson(line) {
  const code = el("code", { class: "json" });
  const text = laidOut(line);
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

export function laidOut(line) {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line;
  }
}
