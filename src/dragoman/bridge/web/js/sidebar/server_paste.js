/**
 * Conversion of MCP servers from editors' settings to the form of session/new.
 *
 * Known forms: {"mcpServers": {name: server}}, {"servers": {…}}, {"context_servers": {…}}, and only the inner object.
 * A server has `command`, `args`, `env`, or `url`, `headers` and perhaps a `type`.
 */

import { explain } from "../connection/failure.js";

const WRAPPERS = ["mcpServers", "servers", "context_servers", "mcp_servers"];
/** @type {Record<string, "http" | "sse">} */
const REMOTE = { http: "http", "streamable-http": "http", streamableHttp: "http", streamable_http: "http", sse: "sse" };

/**
 * The servers for session/new. Throws an Error that describes the problem.
 *
 * @param {string} text
 * @returns {acp.McpServer[]}
 */
export function parseServers(text) {
  const found = unwrap(parse(text));
  const servers = Object.entries(found).map(([name, given]) => toServer(name, given));
  if (servers.length === 0) throw new Error("No server found in this JSON.");
  return servers;
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not valid JSON: ${explain(error)}`, { cause: error });
  }
}

/** @param {any} value */
function unwrap(value) {
  if (!isObject(value)) throw new Error('Expected an object such as {"mcpServers": {"name": {"command": "…"}}}.');
  const inner = WRAPPERS.map((name) => value[name] ?? value.mcp?.[name]).find(isObject) ?? value;
  if (typeof inner.command === "string" || typeof inner.url === "string") return { [hostOf(inner)]: inner };
  return inner;
}

/**
 * @param {string} name
 * @param {any} given
 * @returns {acp.McpServer}
 */
function toServer(name, given) {
  if (!isObject(given)) throw new Error(`“${name}” is not a server: expected an object with "command" or "url".`);
  const command = isObject(given.command) ? given.command.path : given.command;
  if (typeof command === "string" && command) {
    const { args = [], env = {} } = isObject(given.command) ? given.command : given;
    return { name, command, args: texts(args, `“${name}”: args`), env: pairs(env, `“${name}”: env`) };
  }
  if (typeof given.url === "string" && given.url) {
    const type = REMOTE[given.type ?? given.transport ?? "http"];
    if (!type) throw new Error(`“${name}” has the unknown type “${given.type ?? given.transport}”. Expected http or sse.`);
    return { type, name, url: given.url, headers: pairs(given.headers ?? {}, `“${name}”: headers`) };
  }
  throw new Error(`“${name}” has neither a "command" nor a "url".`);
}

/**
 * @param {any} value
 * @param {string} where
 */
function texts(value, where) {
  if (!Array.isArray(value)) throw new Error(`${where} should be a list.`);
  return value.map(String);
}

/**
 * @param {any} value
 * @param {string} where
 * @returns {Array<{ name: string, value: string }>}
 */
function pairs(value, where) {
  if (Array.isArray(value)) return value.map(({ name, value: one }) => ({ name: String(name), value: String(one) }));
  if (!isObject(value)) throw new Error(`${where} should be an object of names and values.`);
  return Object.entries(value).map(([name, one]) => ({ name, value: String(one) }));
}

/**
 * @param {{ command?: unknown, url?: any }} server
 * @returns {string}
 */
function hostOf({ command, url }) {
  try {
    return command ? (String(command).split("/").pop() ?? "") : new URL(url).hostname;
  } catch {
    return "server";
  }
}

/** @param {any} value */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
