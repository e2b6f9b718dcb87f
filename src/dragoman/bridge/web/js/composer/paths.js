/**
 * The files named in conversations, as suggestions for mentions. This module does not use the DOM.
 *
 * The bridge lists the files of the directory. But the most relevant files were named before: by tool calls, changes,
 * links, the output of commands, and the text itself.
 */

import { relativePath } from "../conversation/content.js";

const MOST_PATHS = 500;
const MOST_TEXT_CHARS = 20_000;
const MOST_ARGUMENT_CHARS = 400;
const ARGUMENT = /path|file/i;
// Needs a suffix, because "and/or" is not a file. The characters before it exclude URLs.
const IN_TEXT = /(?:^|[\s"'`(=])((?:\.{0,2}\/)?(?:[\w@+.-]+\/)*[\w@+.-]*\w\.[a-z]\w{0,7})(?![\w/])/gim;
// In prose, only code spans count, because "e.g." and "example.org" are not files.
const CODE = /`([^`\n]+)`/g;

const found = new WeakMap();

/**
 * The paths of all transcripts relative to `cwd`, newest first.
 *
 * @param {page.Transcript[]} transcripts
 * @param {string} cwd
 */
export function knownPaths(transcripts, cwd) {
  const paths = new Set();
  for (const { items } of transcripts) {
    for (let n = items.length - 1; n >= 0 && paths.size < MOST_PATHS; n -= 1) {
      for (const path of pathsOf(items[n])) paths.add(relativePath(path, cwd).replace(/^\.\//, ""));
    }
  }
  paths.delete("");
  return [...paths];
}

/**
 * The directories of paths, each with a final slash.
 *
 * @param {string[]} paths
 */
export function directoriesOf(paths) {
  const directories = new Set();
  for (const path of paths) {
    for (let at = path.indexOf("/", 1); at > 0; at = path.indexOf("/", at + 1)) directories.add(path.slice(0, at + 1));
  }
  return [...directories];
}

/**
 * The paths that match the typed text, best first: by their name, then by any part of the path.
 *
 * @param {string[]} paths
 * @param {string} typed
 */
export function fittingPaths(paths, typed) {
  const wanted = typed.toLowerCase();
  const ranked = paths.map((path) => ({ path, rank: rankOf(path.toLowerCase(), wanted) }));
  return ranked
    .filter(({ rank }) => rank < 3)
    .sort((one, other) => one.rank - other.rank)
    .map(({ path }) => path);
}

/**
 * @param {string} path
 * @param {string} wanted
 */
function rankOf(path, wanted) {
  const name = path.slice(path.lastIndexOf("/", path.length - 2) + 1);
  if (name.startsWith(wanted) || path.startsWith(wanted)) return 0;
  if (name.includes(wanted)) return 1;
  return path.includes(wanted) ? 2 : 3;
}

/** @param {page.Item} item */
function pathsOf(item) {
  const known = found.get(item);
  if (known?.version === item.version) return known.paths;
  const paths = readPaths(item);
  found.set(item, { version: item.version, paths });
  return paths;
}

/** @param {page.Item} item */
function readPaths(item) {
  if (item.type === "tool") return ofCall(item);
  return item.type === "message" ? item.blocks.flatMap((block) => ofBlock(block, inProse)) : [];
}

/** @param {page.ToolItem} item */
function ofCall({ call, terminals }) {
  const parts = (call.content ?? []).flatMap((part) =>
    part.type === "diff" ? [part.path] : part.type === "content" ? ofBlock(part.content ?? {}, inOutput) : [],
  );
  const places = (call.locations ?? []).map(({ path }) => path);
  return [...places, ...parts, ...ofArguments(call.rawInput), ...[...terminals.values()].flatMap(inOutput)].filter(
    (path) => typeof path === "string",
  );
}

/**
 * @param {any} block
 * @param {(text: string) => string[]} inText
 * @returns {string[]}
 */
function ofBlock(block, inText) {
  if (block.type === "resource_link") return ofAddress(block.uri);
  if (block.type === "resource") return ofAddress(block.resource?.uri);
  return block.type === "text" ? inText(block.text ?? "") : [];
}

/** @param {string} uri */
function ofAddress(uri) {
  if (!String(uri).startsWith("file:///")) return [];
  try {
    return [decodeURIComponent(new URL(uri).pathname)];
  } catch {
    return [];
  }
}

/**
 * @param {any} rawInput
 * @returns {string[]}
 */
function ofArguments(rawInput) {
  if (rawInput === null || typeof rawInput !== "object") return [];
  return Object.entries(rawInput)
    .filter(([name]) => ARGUMENT.test(name))
    .flatMap(([, value]) => value)
    .filter((value) => typeof value === "string" && value.length < MOST_ARGUMENT_CHARS && !/[\n*?]/.test(value));
}

/** @param {string} text */
function inOutput(text) {
  return [...text.slice(0, MOST_TEXT_CHARS).matchAll(IN_TEXT)].map((match) => match[1]);
}

/** @param {string} text */
function inProse(text) {
  return [...text.slice(0, MOST_TEXT_CHARS).matchAll(CODE)].flatMap((match) => inOutput(match[1]));
}
