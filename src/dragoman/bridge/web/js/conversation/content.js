/** Content blocks other than text: pictures, files and links. None of them becomes markup. */

import { el, icon } from "../page/dom.js";
import { Output } from "./output.js";
import { cleanText, oneLine, visible } from "../text/safe.js";
import { guardLink, safeAddress } from "../text/sanitize.js";

// In an <img>, even an SVG cannot run scripts or load resources.
const PICTURES = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "image/bmp",
  "image/svg+xml",
]);
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;

/**
 * An element for one content block.
 *
 * @param {page.Block} block
 */
export function contentElement(block) {
  switch (block?.type) {
    case "image":
      return picture(block);
    case "resource_link":
      return linkChip(block);
    case "resource":
      return embedded(block.resource ?? {});
    case "audio":
      return chip("file", `Audio (${oneLine(block.mimeType ?? "unknown type")}) cannot be played`);
    default:
      return chip("other", `Content of type ${oneLine(Reflect.get(block ?? {}, "type"))} cannot be shown`);
  }
}

/** @param {{ data?: string, mimeType?: string | null, uri?: string | null }} image */
function picture({ data, mimeType, uri }) {
  if (!PICTURES.has(mimeType ?? "") || !BASE64.test(data ?? ""))
    return chip("image", `Image of type ${oneLine(mimeType)} cannot be shown`);
  const name = uri ? `Image: ${visible(baseName(uri))}` : "Image";
  return el("img", { class: "picture", alt: name, src: `data:${mimeType};base64,${data}`, loading: "lazy" });
}

/** @param {acp.ResourceLink} link */
function linkChip({ uri, name, title, description }) {
  const words = oneLine(title || name || baseName(uri ?? ""));
  const address = safeAddress(uri);
  const shape = { class: "attachment", title: [visible(uri ?? ""), cleanText(description ?? "")].filter(Boolean).join("\n") };
  if (!address) return el("span", shape, icon("file"), el("span", {}, words));
  return guardLink(el("a", { ...shape, href: address.href }, icon("link"), el("span", {}, words)));
}

/** @param {Partial<acp.TextResourceContents & acp.BlobResourceContents>} resource */
function embedded({ uri, text, mimeType, blob }) {
  const name = visible(baseName(uri ?? "")) || "File";
  if (typeof text !== "string") {
    if (PICTURES.has(mimeType ?? "")) return picture({ data: blob, mimeType, uri });
    return chip("file", name);
  }
  const output = new Output(name);
  const details = el(
    "details",
    { class: "embedded" },
    el("summary", {}, icon("file"), el("span", { title: visible(uri ?? "") }, name)),
    output.element,
  );
  details.addEventListener("toggle", () => output.update(text), { once: true });
  return details;
}

/**
 * @param {string} drawing
 * @param {string} words
 */
function chip(drawing, words) {
  return el("span", { class: "attachment" }, icon(drawing), el("span", {}, words));
}

/**
 * The last part of a path or a URL.
 *
 * @param {string} path
 */
export function baseName(path) {
  const bare = String(path)
    .replace(/[?#].*$/, "")
    .replace(/\/+$/, "");
  const last = bare.slice(bare.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/**
 * A path relative to the session's directory.
 *
 * @param {string} path
 * @param {string} cwd
 */
export function relativePath(path, cwd) {
  const root = cwd && !cwd.endsWith("/") ? `${cwd}/` : cwd;
  return root && path.startsWith(root) ? path.slice(root.length) : path;
}
