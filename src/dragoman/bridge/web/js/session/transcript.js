/**
 * The updates of a session, merged into items. It touches no document: the same history gives the same transcript.
 *
 * `items` are, in order:
 *   {type: "message", role: "user" | "agent" | "thought", messageId, time, blocks, void}
 *                                           void: the agent has withdrawn it and begins anew
 *   {type: "tool", id, call, terminals}     call: the fields of the tool call, as last told
 *   {type: "notice", severity, title, description}  a note of the agent about the conversation
 *   {type: "failure", error}                how a turn failed, after its items
 * Every item has `n`, its place, and `version`, which grows with each change. A text block's text only ever grows.
 */

const VOID = "dragoman/void";

// The blocks of one prompt are journalled together; a later prompt without a message id is another message.
const SAME_PROMPT_MS = 25;

export class Transcript {
  constructor() {
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
    /** @type {Map<string, page.ToolItem>} */
    this.tools = new Map();
  }

  /**
   * Take one update in; returns the item it changed, or the name of the field it changed, or null.
   *
   * @param {acp.SessionUpdate} update
   * @param {number | null} time
   * @returns {page.Item | string | null}
   */
  apply(update, time = null) {
    switch (update.sessionUpdate) {
      case "user_message_chunk":
        return this.#chunk("user", update, time);
      case "agent_message_chunk":
        if (update._meta?.[VOID]) return this.#withdraw(update.messageId ?? null);
        return this.#chunk("agent", update, time);
      case "agent_thought_chunk":
        return this.#chunk("thought", update, time);
      case "tool_call":
      case "tool_call_update":
        return this.#tool(update, time);
      case "notice":
        return this.#notice(update);
      case "plan":
        this.plan = update.entries ?? [];
        return "plan";
      case "available_commands_update":
        this.commands = update.availableCommands ?? [];
        return "commands";
      case "usage_update":
        this.usage = update;
        return "usage";
      case "current_mode_update":
        return this.#mode(update.currentModeId);
      case "config_option_update":
        this.configOptions = update.configOptions ?? [];
        return "options";
      case "session_info_update":
        return this.#info(update);
      default:
        return null;
    }
  }

  /**
   * Keep how a turn failed where it did: the next message comes after it.
   *
   * @param {acp.Error} error
   */
  fail(error) {
    return this.#add({ type: "failure", error });
  }

  /**
   * Take the options of an answer to session/new, load or resume.
   *
   * @param {acp.LoadSessionResponse} result
   */
  begin(result) {
    if (result?.modes) this.modes = result.modes;
    if (result?.configOptions) this.configOptions = result.configOptions;
    this.#servers(result?._meta);
  }

  /**
   * Text that arrived for a message after which nothing else came is still growing.
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
    const item = last && continues(last, role, update, time) ? last : this.#add(message(role, update, time));
    item.time = time ?? item.time;
    addBlock(item.blocks, update.content ?? { type: "text", text: "" });
    item.version += 1;
    return item;
  }

  /**
   * @param {string | null} messageId
   * @returns {page.Item | null}
   */
  #withdraw(messageId) {
    const item = this.items.findLast((one) => isMessage(one, "agent") && one.messageId === messageId);
    if (item?.type !== "message") return null;
    item.void = true;
    item.version += 1;
    return item;
  }

  /** @param {acp.Notice} notice */
  #notice({ severity, title, description }) {
    return title ? this.#add({ type: "notice", severity, title, description: description ?? null }) : null;
  }

  /**
   * @param {acp.ToolCallUpdate & { sessionUpdate: string }} update
   * @param {number | null} time
   * @returns {page.ToolItem}
   */
  #tool(update, time) {
    const { sessionUpdate, toolCallId, _meta, ...fields } = update;
    const item = this.tools.get(toolCallId) ?? this.#addTool(toolCallId, time);
    const told = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
    Object.assign(item.call, Object.fromEntries(told));
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
    return "options";
  }

  /** @param {acp.SessionInfoUpdate} update */
  #info(update) {
    if (update.title !== undefined) this.title = update.title;
    return this.#servers(update._meta) ? "servers" : "title";
  }

  /** @param {Record<string, any> | null | undefined} meta */
  #servers(meta) {
    const servers = meta?.["dragoman/mcp"];
    if (!Array.isArray(servers)) return false;
    this.servers = servers;
    return true;
  }
}

/** @param {page.Block} block */
export function textOf(block) {
  return block.type === "text" ? block.text : "";
}

/**
 * The text of the last message of a role; empty when there is none.
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
  return { type: "message", role, messageId: update.messageId ?? null, time, blocks: [], void: false };
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
 * @param {page.Block[]} blocks
 * @param {acp.ContentBlock} content
 */
function addBlock(blocks, content) {
  const last = blocks.at(-1);
  if (content.type === "text" && last?.type === "text") last.text += content.text ?? "";
  else if (content.type === "text") blocks.push({ type: "text", text: content.text ?? "" });
  else blocks.push(content);
}

/**
 * Output that some agents send piece by piece beside the content, as an extension.
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
