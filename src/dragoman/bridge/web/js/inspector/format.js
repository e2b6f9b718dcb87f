/** Readable numbers and times for the inspector. */

import { oneLine } from "../text/safe.js";

/** @param {number} ms */
export function clock(ms) {
  const date = new Date(ms);
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const millis = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${millis}`;
}

/** @param {number} size */
export function bytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1000).toFixed(size < 10_000 ? 1 : 0)} kB`;
  return `${(size / 1_000_000).toFixed(1)} MB`;
}

/** @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export const DIRECTIONS = { to_agent: "to the agent", from_agent: "from the agent" };

const ARROWS = { to_agent: "→", from_agent: "←" };

/** @param {page.WireEntry} entry */
export function arrow(entry) {
  return ARROWS[entry.direction] ?? "·";
}

/**
 * The label of a row: the method, and the kind of an update.
 *
 * @param {page.WireEntry} entry
 */
export function label(entry) {
  const name = oneLine(entry.name) || (entry.kind === "malformed" ? "not valid JSON-RPC" : "response");
  const update = entry.method === "session/update" ? /"sessionUpdate"\s*:\s*"([a-z_]{1,40})"/.exec(entry.line) : null;
  return update ? `${name} ${update[1]}` : name;
}

/**
 * One sentence about a message, for screen readers.
 *
 * @param {page.WireEntry} entry
 */
export function sentence(entry) {
  const parts = [entry.kind, label(entry), DIRECTIONS[entry.direction], bytes(entry.size), duration(entry.latencyMs)];
  if (entry.failed) parts.push("failed");
  return parts.filter(Boolean).join(", ");
}
