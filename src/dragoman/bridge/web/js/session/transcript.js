/**
 * The updates of a session, merged into items, without the DOM. The same history gives the same transcript.
 *
 * `items` are, in order:
 *   {type: "message", role: "user" | "agent" | "thought", messageId, time, blocks, void}
 *                                           void: the agent has withdrawn it and writes it again
 *   {type: "tool", id, call, terminals}     call: the latest fields of the tool call
 *   {type: "notice", severity, title, description}  a note of the agent about the conversation, replaced
 *                                           by a later one with the same key
 *   {type: "compaction", id, status, summary, error, round}   the conversation before it was summarized; `round` grows
 *                                           when the summary restarts
 *   {type: "subagent", id, fields}            a subagent's session; fields: its fields
 *   {type: "session_message", id, fields, blocks, round}  a message between sessions
 *   {type: "end", error, stopReason}        the end of a turn that did not end normally, after its items
 * A message of the user has `turn` once its turn has ended: {ms, tokens, cost}, as far as they are known.
 * Every item has `n`, its position, and `version`, which grows with each change. A text block's text only grows.
 *
 * A transcript may begin in the middle of a history. `prepend` adds the part before.
 */

import { addBlock, grow, replace, textOf } from "./blocks.js";
import { join } from "./joining.js";
import { openTurn, sumUp } from "./turn.js";

const VOID = "dragoman/void";
const TURN_END = "dragoman/turn";
const NOTICE = "dragoman/notice";

// Updates that may arrive at any time. They do not belong to a turn and do not extend it.
const ASIDE = new Set([
  "user_message_chunk",
  "available_commands_update",
  "config_option_update",
  "current_mode_update",
  "notice",
  "session_info_update",
  "usage_update",
]);

// The blocks of one prompt are stored together. A later prompt without a message id is another message.
const SAME_PROMPT_MS = 25;

export class Transcript {
  /** @param {{ isWhole?: boolean }} options whether it begins with the history */
  constructor({ isWhole = true } = {}) {
    /** @type {page.Item[]} */
    this.items = [];
    /** @type {acp.PlanEntry[] | null} */
    this.plan = null;
    /** @type {acp.AvailableCommand[]} */
    this.commands = [];
    /** @type {acp.UsageUpdate | null} */
    this.usage = null;
    /** @type {acp.SessionModeState | null} */
    this.modes = null;
    /** @type {acp.SessionConfigOption[] | null} */
    this.configOptions = null;
    /** @type {bridge.ServerFacts[]} */
    this.servers = [];
    /** @type {string | null} */
    this.title = null;
    /**
     * The end of a turn that began in the part before.
     *
     * @type {page.OpenTurn | null}
     */
    this.head = isWhole ? null : openTurn(null, null, undefined);
    this.turn = this.head;
    /** @type {page.OpenTurn | null} */
    this.firstTurn = null;
    /**
     * The turns for which the cost before them is not known yet.
     *
     * @type {page.OpenTurn[]}
     */
    this.costUnknown = [];
    /**
     * The fields that updates have set.
     *
     * @type {Set<string>}
     */
    this.set = new Set();
    /**
     * Ids of messages of the part before that the agent has withdrawn.
     *
     * @type {Array<string | null>}
     */
    this.withdrawn = [];
    /** @type {Map<string, page.ToolItem>} */
    this.tools = new Map();
    /**
     * Compactions, subagents and messages between sessions, by their kind and id.
     *
     * @type {Map<string, any>}
     */
    this.entities = new Map();
  }

  /**
   * Apply one update. Return the changed item, the name of the changed field, or null.
   *
   * @param {acp.SessionUpdate} update
   * @param {number | null} time
   * @returns {page.Item | string | null}
   */
  apply(update, time = null) {
    if (this.turn && !this.turn.isOver && time !== null && isWork(update)) this.turn.until = time;
    switch (update.sessionUpdate) {
      case "user_message_chunk":
        return this.#chunk("user", update, time);
      case "agent_message_chunk":
        if (update._meta?.[VOID]) return this.withdraw(update.messageId ?? null);
        return this.#chunk("agent", update, time);
      case "agent_thought_chunk":
        return this.#chunk("thought", update, time);
      case "tool_call":
      case "tool_call_update":
        return this.#tool(update, time);
      case "notice":
        return this.#notice(update);
      case "compaction_update":
        return this.#compaction(update);
      case "compaction_summary_chunk":
        return grow(this.#entity("compaction", update.compactionId, update, { status: "in_progress", summary: [], error: null, round: 0 }), "summary", update.content);
      case "subagent_update":
        return this.#subagent(update);
      case "session_message":
        return this.#sessionMessage(update);
      case "session_message_chunk":
        return grow(this.#entity("session_message", update.messageId, update, { fields: {}, blocks: [], round: 0 }), "blocks", update.content);
      case "plan":
        this.plan = update.entries ?? [];
        return this.#mark("plan");
      case "available_commands_update":
        this.commands = update.availableCommands ?? [];
        return this.#mark("commands");
      case "usage_update":
        this.usage = update;
        if (this.turn) this.turn.cost = update.cost ?? this.turn.cost;
        return "usage";
      case "current_mode_update":
        return this.#mode(update.currentModeId);
      case "config_option_update":
        this.configOptions = update.configOptions ?? [];
        return this.#mark("options");
      case "session_info_update":
        return this.#info(update);
      default:
        return null;
    }
  }

  /**
   * Apply the options in the answer to session/new, load or resume.
   *
   * @param {acp.LoadSessionResponse} result
   */
  begin(result) {
    if (result?.modes) this.modes = result.modes;
    if (result?.configOptions) this.configOptions = result.configOptions;
    this.#servers(result?._meta);
  }

  /**
   * Add the part of the history before. Return the items that changed.
   *
   * @param {Transcript} earlier
   */
  prepend(earlier) {
    return join(earlier, this);
  }

  /**
   * Set the fields that no update here has set, for example the plan. Return the messages whose turns have another sum
   * with them.
   *
   * @param {Transcript} earlier
   */
  adopt(earlier) {
    const isOver = this.firstTurn !== null && earlier.plan?.every(({ status }) => status === "completed");
    if (!this.set.has("plan") && !isOver) this.plan = earlier.plan;
    if (!this.set.has("commands")) this.commands = earlier.commands;
    if (!this.set.has("servers") && this.servers.length === 0) this.servers = earlier.servers;
    if (!this.set.has("title")) this.title = earlier.title;
    this.usage ??= earlier.usage;
    this.modes ??= earlier.modes;
    this.configOptions ??= earlier.configOptions;
    earlier.set.forEach((name) => this.set.add(name));
    if (!earlier.usage && earlier.head) return [];
    const turns = this.costUnknown;
    this.costUnknown = [];
    return turns.flatMap((turn) => {
      turn.costBefore = earlier.usage?.cost ?? null;
      turn.cost ??= turn.costBefore;
      return (turn.item?.turn && sumUp(turn)) ?? [];
    });
  }

  /**
   * Whether a message may still grow: it is the last item.
   *
   * @param {page.Item} item
   */
  isLast(item) {
    return item.n === this.items.length - 1;
  }

  /**
   * @param {page.Role} role
   * @param {acp.ContentChunk} update
   * @param {number | null} time
   * @returns {page.MessageItem}
   */
  #chunk(role, update, time) {
    const last = this.items.at(-1);
    const isContinued = last && continues(last, role, update, time);
    const item = isContinued ? last : this.#add(message(role, update, time));
    if (role === "user" && !isContinued) this.#beginTurn(item, time);
    item.time = time ?? item.time;
    addBlock(item.blocks, update.content ?? { type: "text", text: "" });
    item.version += 1;
    return item;
  }

  /**
   * @param {page.MessageItem} item
   * @param {number | null} time
   */
  #beginTurn(item, time) {
    this.endTurn();
    // A finished plan belongs to the previous turn.
    if (this.plan?.every(({ status }) => status === "completed")) this.plan = null;
    const cost = this.usage?.cost ?? null;
    this.turn = openTurn(item, time, this.usage || !this.head ? cost : undefined);
    this.firstTurn ??= this.turn;
    if (this.turn.costBefore === undefined) this.costUnknown.push(this.turn);
  }

  /**
   * Add up the work on the user's last message. Return that message if its summary changed. The
   * end of the work may be reported before its last updates, so this may run more than once.
   *
   * @returns {page.MessageItem | null}
   */
  endTurn() {
    return this.turn && sumUp(this.turn);
  }

  /** @param {string} field */
  #mark(field) {
    this.set.add(field);
    return field;
  }

  /**
   * @param {string | null} messageId
   * @returns {page.Item | null}
   */
  withdraw(messageId) {
    const item = this.items.findLast((one) => isMessage(one, "agent") && one.messageId === messageId);
    if (item?.type !== "message") {
      if (this.head) this.withdrawn.push(messageId);
      return null;
    }
    item.void = true;
    item.version += 1;
    return item;
  }

  /** @param {acp.Notice} update */
  #notice(update) {
    const { severity, title, description, _meta } = update;
    if (!title) return null;
    const fields = { severity, title, description: description ?? null };
    const key = _meta?.[NOTICE];
    if (typeof key !== "string") return this.#add({ type: "notice", ...fields });
    const item = Object.assign(this.#entity("notice", key, update, fields), fields);
    item.version += 1;
    return item;
  }

  /** @param {acp.CompactionUpdate} update */
  #compaction(update) {
    const { compactionId, status, summary, error } = update;
    const item = this.#entity("compaction", compactionId, update, { status, summary: [], error: null, round: 0 });
    item.status = status;
    if (error !== undefined) item.error = error;
    return replace(item, "summary", summary);
  }

  /** @param {acp.SubagentUpdate & { sessionUpdate: string }} update */
  #subagent(update) {
    const { sessionUpdate, sessionId, _meta, ...fields } = update;
    const item = this.#entity("subagent", sessionId, update, { fields: {} });
    Object.assign(item.fields, fields);
    item.version += 1;
    return item;
  }

  /** @param {acp.SessionMessage & { sessionUpdate: string }} update */
  #sessionMessage(update) {
    const { sessionUpdate, messageId, content, _meta, ...fields } = update;
    const item = this.#entity("session_message", messageId, update, { fields: {}, blocks: [], round: 0 });
    Object.assign(item.fields, fields);
    return replace(item, "blocks", content);
  }

  /**
   * The item of this kind and id. Its first update determines its position.
   *
   * @param {string} type
   * @param {string} id
   * @param {any} update
   * @param {object} fields
   */
  #entity(type, id, update, fields) {
    const key = `${type} ${id}`;
    if (!this.entities.has(key)) this.entities.set(key, this.#add({ type, id, updates: [], ...fields }));
    const item = this.entities.get(key);
    if (this.head) item.updates.push(update);
    return item;
  }

  /**
   * @param {acp.ToolCallUpdate & { sessionUpdate: string }} update
   * @param {number | null} time
   * @returns {page.ToolItem}
   */
  #tool(update, time) {
    const { sessionUpdate, toolCallId, _meta, ...fields } = update;
    const item = this.tools.get(toolCallId) ?? this.#addTool(toolCallId, time);
    const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
    Object.assign(item.call, Object.fromEntries(given));
    Object.assign(item.given, Object.fromEntries(given));
    if (_meta) addTerminal(item, _meta);
    item.version += 1;
    return item;
  }

  /**
   * @param {string} id
   * @param {number | null} time
   * @returns {page.ToolItem}
   */
  #addTool(id, time) {
    const item = this.#add({
      type: "tool",
      id,
      time,
      call: { title: "", kind: "other", status: "pending" },
      given: {},
      terminals: new Map(),
    });
    this.tools.set(id, item);
    return item;
  }

  /** @param {any} item */
  #add(item) {
    item.n = this.items.length;
    item.version = 0;
    this.items.push(item);
    return item;
  }

  /** @param {string} id */
  #mode(id) {
    if (this.modes) this.modes = { ...this.modes, currentModeId: id };
    return this.#mark("options");
  }

  /** @param {acp.SessionInfoUpdate} update */
  #info(update) {
    if (update.title !== undefined) {
      this.#mark("title");
      this.title = update.title;
    }
    const end = update._meta?.[TURN_END];
    if (end) return this.#end(end);
    return this.#servers(update._meta) ? "servers" : "title";
  }

  /** @param {{ error?: acp.Error, stopReason?: string | null, usage?: acp.Usage }} end */
  #end({ error, stopReason, usage }) {
    if (this.turn) Object.assign(this.turn, { tokens: usage?.totalTokens ?? null, isOver: true });
    if (!error && stopReason === "end_turn") return "turn";
    return this.#add({ type: "end", error: error ?? null, stopReason: stopReason ?? null });
  }

  /** @param {Record<string, any> | null | undefined} meta */
  #servers(meta) {
    const servers = meta?.["dragoman/mcp"];
    if (!Array.isArray(servers)) return false;
    this.servers = servers;
    this.#mark("servers");
    return true;
  }
}

/** @param {acp.SessionUpdate} update */
function isWork(update) {
  return !ASIDE.has(update.sessionUpdate) || update._meta?.[TURN_END] !== undefined;
}

/**
 * The text of the last message of a role, or an empty text.
 *
 * @param {Transcript | undefined} transcript
 * @param {page.Role} role
 */
export function lastText(transcript, role) {
  const last = transcript?.items.findLast((item) => isMessage(item, role));
  return last?.type === "message" ? last.blocks.map(textOf).join("") : "";
}

/**
 * @param {page.Item} item
 * @param {page.Role} role
 * @returns {item is page.MessageItem}
 */
export function isMessage(item, role) {
  return item.type === "message" && item.role === role;
}

/**
 * @param {page.Role} role
 * @param {acp.ContentChunk} update
 * @param {number | null} time
 */
function message(role, update, time) {
  return { type: "message", role, messageId: update.messageId ?? null, time, blocks: [], void: false, turn: null };
}

/**
 * @param {page.Item} last
 * @param {page.Role} role
 * @param {acp.ContentChunk} update
 * @param {number | null} time
 * @returns {last is page.MessageItem}
 */
function continues(last, role, update, time) {
  if (last.type !== "message" || last.role !== role) return false;
  const id = update.messageId ?? null;
  if (id !== null || last.messageId !== null) return id === last.messageId;
  return role !== "user" || time === null || last.time === null || time - last.time <= SAME_PROMPT_MS;
}

/**
 * Append output that some agents send in pieces, as an extension.
 *
 * @param {page.ToolItem} item
 * @param {Record<string, any>} meta
 */
function addTerminal(item, meta) {
  const output = meta.terminal_output;
  if (typeof output?.data === "string") {
    const id = String(output.terminal_id ?? "");
    item.terminals.set(id, (item.terminals.get(id) ?? "") + output.data);
  }
  if (meta.terminal_exit) item.exit = meta.terminal_exit;
}
