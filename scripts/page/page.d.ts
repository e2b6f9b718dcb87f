// What the page's modules share, for the type check alone: `page` has its own objects, `bridge` what the bridge tells.

declare namespace page {
  type App = import("../../src/dragoman/bridge/web/js/app/app.js").App;
  type Connection = import("../../src/dragoman/bridge/web/js/connection/connection.js").Connection;
  type Session = import("../../src/dragoman/bridge/web/js/session/session.js").Session;
  type Transcript = import("../../src/dragoman/bridge/web/js/session/transcript.js").Transcript;
  type WireLog = import("../../src/dragoman/bridge/web/js/inspector/log.js").WireLog;

  type View = "conversation" | "inspector";

  /** Children of an element; those that are null, undefined or false are left out. */
  type Child = Node | string | number | null | undefined | false | Child[];

  /** Attributes and listeners of an element; see dom.js. */
  type Attributes = { [listener: `on${string}`]: ((event: any) => unknown) | undefined; [name: string]: any };

  /** See connection.js. */
  type ConnectionState = {
    phase: "idle" | "connecting" | "open" | "waiting" | "reconnecting" | "refused";
    reason?: string;
    refused?: boolean;
    stderr?: string;
    retryAt?: number;
    again?: boolean;
  };

  /** How a request of the agent is answered. */
  type Answer = { id: acp.RequestId; result: (result: any) => void; error: (code: number, message: string) => void };

  type Settled = { by: "viewer" | "you" | "timeout" | "cancel" | "agent"; result: any };

  type PermissionParams = acp.RequestPermissionRequest;
  type ElicitationParams = acp.CreateElicitationRequest;

  /** A request of the agent that waits for a person. */
  type QuestionOf<Method extends string, Params> = {
    id: acp.RequestId;
    method: Method;
    params: Params;
    settled: Settled | null;
    answer: (result: any) => void;
  };
  type PermissionQuestion = QuestionOf<"session/request_permission", PermissionParams>;
  type ElicitationQuestion = QuestionOf<"elicitation/create", ElicitationParams>;
  type Question = PermissionQuestion | ElicitationQuestion;

  /** The card that shows a question. */
  type Card = {
    element: HTMLElement;
    words: string;
    isSettled: boolean;
    focus(): void;
    key(event: KeyboardEvent): boolean;
    settle(settled: Settled): string;
  };

  type Block = { type: "text"; text: string } | Exclude<acp.ContentBlock, { type: "text" }>;
  type Call = Omit<acp.ToolCall, "toolCallId">;
  type Role = "user" | "agent" | "thought";

  /** The items of a transcript; see transcript.js. */
  type ItemBase = { n: number; version: number };
  type MessageItem = ItemBase & {
    type: "message";
    role: Role;
    messageId: string | null;
    time: number | null;
    blocks: Block[];
    void: boolean;
  };
  type ToolItem = ItemBase & {
    type: "tool";
    id: string;
    time: number | null;
    call: Call;
    terminals: Map<string, string>;
    exit?: { exit_code?: number | null; signal?: string | null };
  };
  type NoticeItem = ItemBase & { type: "notice"; severity: string; title: string; description: string | null };
  type FailureItem = ItemBase & { type: "failure"; error: acp.Error };
  type Item = MessageItem | ToolItem | NoticeItem | FailureItem;

  /** What shows an item. */
  type ItemView = { element: HTMLElement; update(live: boolean): void };

  /** What one of the agent's options is, modes included. */
  type Option = acp.SessionConfigOption & { isMode?: boolean };

  /** A file, picture or mention that goes with a prompt. */
  type Attachment = { name: string; drawing: string; bytes: number; block: acp.ContentBlock };

  /** A suggestion under the caret. */
  type Choice = { text: string; name: string; hint: string; words: string; path?: string; goesOn?: boolean };

  /** A line of a difference. */
  type Row = { kind: "same" | "del" | "add"; old: number | null; new: number | null; text: string };

  /** A message on the wire, with what the inspector found out about it. */
  type WireEntry = bridge.WireEntry & { name: string; failed: boolean; partner: WireEntry | null };
}

declare namespace bridge {
  /** The answer of ./config.json. */
  type Config = {
    version: string;
    agents: Array<{ name: string; title: string }>;
    cwd: string;
    role: "owner" | "reader";
    maxMessageBytes: number;
  };

  /** `_dragoman/session`. */
  type SessionFacts = {
    sessionId: string;
    cwd?: string;
    title?: string | null;
    state: "idle" | "running" | "asleep" | "gone";
    pending: number;
    viewers: number;
    updatedAt?: string | null;
    stopReason?: acp.StopReason | null;
    error?: acp.Error | null;
    reset?: boolean;
    deleted?: boolean;
    _meta?: any;
  };

  /** `_dragoman/agent`. */
  type AgentFacts = {
    state: "starting" | "ready" | "crashed" | "stopped";
    reason?: string | null;
    stderr?: string | null;
    retryInS?: number | null;
  };

  /** `_dragoman/settled`. */
  type Settled = { requestId: acp.RequestId; by: page.Settled["by"]; result?: any };

  /** An entry of `_dragoman/wire`. */
  type WireEntry = {
    n: number;
    time: number;
    direction: "to_agent" | "from_agent";
    kind: "request" | "response" | "notification" | "malformed";
    method?: string | null;
    id?: acp.RequestId;
    sessionId?: string | null;
    size: number;
    latencyMs?: number | null;
    line: string;
    cut?: boolean;
  };

  /** How one MCP server of a session is: `dragoman/mcp` in `_meta`. */
  type ServerFacts = {
    name: string;
    transport?: string;
    state: "connecting" | "ready" | "failed" | "stopped";
    tools?: number;
    reason?: string | null;
  };

  /** The requests that the page sends. */
  type Requests = {
    initialize: { params: acp.InitializeRequest; result: acp.InitializeResponse };
    "session/new": { params: acp.NewSessionRequest; result: acp.NewSessionResponse };
    "session/load": { params: acp.LoadSessionRequest; result: acp.LoadSessionResponse };
    "session/fork": { params: acp.LoadSessionRequest; result: acp.ForkSessionResponse };
    "session/delete": { params: { sessionId: string }; result: {} };
    "session/list": { params: { cursor?: string }; result: acp.ListSessionsResponse };
    "session/prompt": { params: acp.PromptRequest; result: acp.PromptResponse };
    "session/set_mode": { params: { sessionId: string; modeId: string }; result: {} };
    "session/set_config_option": {
      params: { sessionId: string; configId: string; value: string | boolean; type?: "boolean" };
      result: acp.SetSessionConfigOptionResponse;
    };
    "_dragoman/sessions": { params: {}; result: { sessions?: SessionFacts[] } };
    "_dragoman/inspect": { params: { on: boolean }; result: { entries?: WireEntry[] } };
  };

  /** The notifications that the page sends. */
  type Notices = {
    "session/cancel": { sessionId: string };
    "_dragoman/leave": { sessionId: string };
  };

  /** The notifications that the page receives. */
  type News = {
    "session/update": acp.SessionNotification;
    "elicitation/complete": acp.CompleteElicitationNotification;
    "$/cancel_request": { requestId: acp.RequestId };
    "_dragoman/agent": AgentFacts;
    "_dragoman/session": SessionFacts;
    "_dragoman/settled": Settled;
    "_dragoman/wire": { entries?: WireEntry[] };
  };
}
