/**
 * What a session's updates add up to. It touches no document, so the same history always gives the same transcript.
 *
 * `items` are, in order:
 *   {type: "message", role: "user" | "agent" | "thought", messageId, time, blocks, void}
 *                                           void: the agent has withdrawn it and begins anew
 *   {type: "tool", id, call, terminals}     call: the fields of the tool call, as last told
 *   {type: "notice", severity, title, description}  what was said about the conversation, while it was
 *   {type: "failure", error}                how a turn ended that ended badly, after what there is of it
 * Every item has `n`, its place, and `version`, which grows with each change. A text block's text only ever grows.
 */

const ROLES = {
  user_message_chunk: "user",
  agent_message_chunk: "agent",
  agent_thought_chunk: "thought",
};

const VOID = "dragoman/void";

// The blocks of one prompt are journalled together; a later prompt without a message id is another message.
const SAME_PROMPT_MS = 25;

export class Transcript {
  constructor() {
    this.items = [];
    this.plan = null;
    this.commands = [];
    this.usage = null;
    this.modes = null;
    this.configOptions = null;
    this.servers = [];
    this.title = null;
    this.tools = new Map();
  }

  /** Take one update in; returns the item it changed, or the name of the field it changed, or null. */
  apply(update, time = null) {
    const role = ROLES[update.sessionUpdate];
    if (role === "agent" && update._meta?.[VOID]) return this.#withdraw(update.messageId ?? null);
    if (role) return this.#chunk(role, update, time);
    switch (update.sessionUpdate) {
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

  /** Keep how a turn failed where it did: the next message comes after it. */
  fail(error) {
    return this.#add({ type: "failure", error });
  }

  /** Take in what an answer to session/new, load or resume says. */
  begin(result) {
    if (result?.modes) this.modes = result.modes;
    if (result?.configOptions) this.configOptions = result.configOptions;
    this.#servers(result?._meta);
  }

  /** Text that arrived for a message after which nothing else came is still growing. */
  isLast(item) {
    return item.n === this.items.length - 1;
  }

  #chunk(role, update, time) {
    const last = this.items.at(-1);
    const item = last && continues(last, role, update, time) ? last : this.#add(message(role, update, time));
    item.time = time ?? item.time;
    addBlock(item.blocks, update.content ?? { type: "text", text: "" });
    item.version += 1;
    return item;
  }

  #withdraw(messageId) {
    const item = this.items.findLast((one) => one.role === "agent" && one.messageId === messageId);
    if (!item) return null;
    item.void = true;
    item.version += 1;
    return item;
  }

  #notice({ severity, title, description }) {
    return title ? this.#add({ type: "notice", severity, title, description: description ?? null }) : null;
  }

  #tool(update, time) {
    const { sessionUpdate, toolCallId, _meta, ...fields } = update;
    const item = this.tools.get(toolCallId) ?? this.#addTool(toolCallId, time);
    for (const [name, value] of Object.entries(fields)) {
      if (value !== null && value !== undefined) item.call[name] = value;
    }
    if (_meta) addTerminal(item, _meta);
    item.version += 1;
    return item;
  }

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

  #add(item) {
    item.n = this.items.length;
    item.version = 0;
    this.items.push(item);
    return item;
  }

  #mode(id) {
    if (this.modes) this.modes = { ...this.modes, currentModeId: id };
    return "options";
  }

  #info(update) {
    if (update.title !== undefined) this.title = update.title;
    return this.#servers(update._meta) ? "servers" : "title";
  }

  #servers(meta) {
    const servers = meta?.["dragoman/mcp"];
    if (!Array.isArray(servers)) return false;
    this.servers = servers;
    return true;
  }
}

function message(role, update, time) {
  return { type: "message", role, messageId: update.messageId ?? null, time, blocks: [], void: false };
}

function continues(last, role, update, time) {
  if (last.type !== "message" || last.role !== role) return false;
  const id = update.messageId ?? null;
  if (id !== null || last.messageId !== null) return id === last.messageId;
  return role !== "user" || time === null || last.time === null || time - last.time <= SAME_PROMPT_MS;
}

function addBlock(blocks, content) {
  const last = blocks.at(-1);
  if (content.type === "text" && last?.type === "text") last.text += content.text ?? "";
  else if (content.type === "text") blocks.push({ type: "text", text: content.text ?? "" });
  else blocks.push(content);
}

/** Output that some agents send piece by piece beside the content, as an extension. */
function addTerminal(item, meta) {
  const output = meta.terminal_output;
  if (typeof output?.data === "string") {
    const id = String(output.terminal_id ?? "");
    item.terminals.set(id, (item.terminals.get(id) ?? "") + output.data);
  }
  if (meta.terminal_exit) item.exit = meta.terminal_exit;
}
