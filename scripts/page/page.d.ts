// What the page's modules share, for the type check alone: `page` has its own objects, `bridge` what the bridge tells.

declare namespace page {
  type App = import("../../src/dragoman/bridge/web/js/app/app.js").App;
  type Connection = import("../../src/dragoman/bridge/web/js/connection/connection.js").Connection;
  type Session = import("../../src/dragoman/bridge/web/js/session/session.js").Session;
  type Transcript = import("../../src/dragoman/bridge/web/js/session/transcript.js").Transcript;
  type Composer = import("../../src/dragoman/bridge/web/js/composer/composer.js").Composer;
  type WireLog = import("../../src/dragoman/bridge/web/js/inspector/log.js").WireLog;

  type View = "conversation" | "review" | "inspector";

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

  type Settled = { by: "viewer" | "link" | "you" | "timeout" | "cancel" | "agent" | "login"; result: any };

  type PermissionParams = acp.RequestPermissionRequest;
  type ElicitationParams = acp.CreateElicitationRequest;

  /** A request of the agent that waits for a person. */
  type QuestionOf<Method extends string, Params> = {
    id: acp.RequestId;
    method: Method;
    params: Params;
    settled: Settled | null;
    /** Whether a person has gone to another page for it, and has not come back. */
    waiting: boolean;
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
    wait?(): void;
    focus(): void;
    key(event: KeyboardEvent): boolean;
    settle(settled: Settled): string;
  };

  type Block = { type: "text"; text: string } | Exclude<acp.ContentBlock, { type: "text" }>;
  type Call = Omit<acp.ToolCall, "toolCallId">;
  type Role = "user" | "agent" | "thought";

  /** The items of a transcript; see transcript.js. */
  type ItemBase = { n: number; version: number; place?: number };
  type MessageItem = ItemBase & {
    type: "message";
    role: Role;
    messageId: string | null;
    time: number | null;
    blocks: Block[];
    void: boolean;
    /** Of a message of the user, once the work on it has ended. */
    turn: { ms: number | null; tokens: number | null; cost: acp.Cost | null } | null;
  };
  /** The work on the last message of the user. */
  type OpenTurn = {
    /** Null if the message is in the part of the history before. */
    item: MessageItem | null;
    from: number | null;
    until: number | null;
    tokens: number | null;
    costBefore: acp.Cost | null | undefined;
    cost: acp.Cost | null;
    isOver: boolean;
  };
  type ToolItem = ItemBase & {
    type: "tool";
    id: string;
    time: number | null;
    call: Call;
    /** The fields of the call that updates have set. */
    given: Partial<Call>;
    terminals: Map<string, string>;
    exit?: { exit_code?: number | null; signal?: string | null };
  };
  type NoticeItem = ItemBase & { type: "notice"; severity: string; title: string; description: string | null };
  type EndItem = ItemBase & { type: "end"; error: acp.Error | null; stopReason: string | null };
  type CompactionItem = ItemBase & {
    type: "compaction";
    id: string;
    status: string;
    summary: Block[];
    error: string | null;
    round: number;
  };
  type SubagentItem = ItemBase & { type: "subagent"; id: string; fields: Partial<acp.SubagentUpdate> };
  type SessionMessageItem = ItemBase & {
    type: "session_message";
    id: string;
    fields: Partial<acp.SessionMessage>;
    blocks: Block[];
    round: number;
  };
  type Item =
    | MessageItem
    | ToolItem
    | NoticeItem
    | CompactionItem
    | SubagentItem
    | SessionMessageItem
    | EndItem;

  /** What shows an item. */
  type ItemView = { element: HTMLElement; update(live: boolean): void; open?(): void };

  /** What one of the agent's options is, modes included. */
  type Option = acp.SessionConfigOption & { isMode?: boolean };

  /** A file, picture or mention that goes with a prompt. */
  type Attachment = { name: string; drawing: string; bytes: number; block: acp.ContentBlock };

  /** A message of before that is written again: `open` gives the session that it is sent in. */
  type Resend = { text: string; attachments: Attachment[]; words: string; open: () => Promise<Session> };

  /** What a person can do with a message of theirs. */
  type MessageActions = { edit: () => void; retry: () => void };

  /** A change of a file that the agent has shown. */
  type Change = { oldText: string | null; newText: string };

  /** The changes of one file, in their order. */
  type ChangedFile = { path: string; changes: Change[] };

  /** A suggestion under the caret. */
  type Choice = { text: string; name: string; hint: string; words: string; path?: string; continues?: boolean };

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
    session?: string | null;
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
    archived?: boolean;
    origin?: string;
    parent?: string;
    stopReason?: acp.StopReason | null;
    error?: acp.Error | null;
    reset?: boolean;
    deleted?: boolean;
    /** Only in the agent's own list; the page notes it. */
    elsewhere?: boolean;
    _meta?: any;
  };

  type SessionGroup = "sessions" | "runs" | "archived";

  /** A part of a list of sessions. */
  type SessionPage = { sessions: SessionFacts[]; nextCursor?: string };

  /** `_dragoman/agent`. */
  type AgentFacts = {
    state: "starting" | "ready" | "crashed" | "stopped";
    reason?: string | null;
    stderr?: string | null;
    retryInS?: number | null;
  };

  /** `_dragoman/queue`. */
  type Queue = { prompts: Array<{ id: string; text: string; attachments: string[] }>; held: boolean };

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

  /** A message of the user, as `dragoman/fork` names it. */
  type NamedMessage = { ids: string[] } | { text: string; occurrence: number };

  /** What the page behind a link shows of a question. */
  type ShownQuestion = { call?: Partial<page.Call>; cwd?: string; title?: string; agent?: string };

  /** The answer of `/answer`: a question that a link leads to. */
  type LinkedQuestion =
    | {
        state: "open";
        agent: string;
        shown: ShownQuestion;
        options: { optionId: string; name: string; kind: string }[];
        expires: number;
      }
    | { state: "answered"; by: string; choice: string | null }
    | { state: "over" }
    | { state: "gone" }
    | { state: "unknown" }
    | { state: "failed"; words: string };

  /** A server in the answer to `_dragoman/mcp/list`. */
  type ListedServer = {
    name: string;
    origin: string;
    what: string;
    wantsLogin: boolean;
    canRestart: boolean;
    tools: { name: string; title?: string; description?: string; readsOnly?: boolean }[];
  };

  /** The requests about MCP servers: `dragoman/mcp` in `_meta` of the agent's capabilities. */
  type ServerMethods = { list: "_dragoman/mcp/list"; restart: "_dragoman/mcp/restart" };

  /** The names of the requests of the first minute: `dragoman/start` in `_meta` of our agent's capabilities. */
  type StartMethods = {
    introduce: "_dragoman/introduce";
    offers: "_dragoman/models/offers";
    connect: "_dragoman/models/connect";
    chooseAgent: "_dragoman/agents/choose";
  };

  /** What the agent tells about an empty conversation; `error` if it cannot. */
  type Introduction = {
    model: string;
    isLanguageModel: boolean;
    words: string;
    prompts: string[];
    takes: string[];
    error?: unknown;
  };

  type ProviderOffer = { id: string; title: string; model?: string; variable?: string; kept?: boolean; problem?: string; install?: string; restarts?: boolean };
  type ModelServer = { title: string; url: string; models: string[] };
  type InstalledAgent = { name: string; title: string; command?: string[]; problem?: string };
  type Offers = {
    providers: ProviderOffer[];
    servers: ModelServer[];
    agents: InstalledAgent[];
    chosen: { model?: { name: string; base_url?: string }; agent?: string };
  };
  type ModelWish = { provider: string; model?: string; apiKey?: string; baseUrl?: string };
  type Connected = { model?: string; answer?: string; durationMs?: number; countsBefore?: string | null; problem?: string };
  /** A place where words were said: `_dragoman/found`. */
  type SearchHit = { sessionId: string; seq: number; role: "user" | "agent"; before: string; match: string; after: string };

  /** A part of a history, and the cursor of the part before it. */
  type HistoryPart = { updates: Array<{ update: acp.SessionUpdate; time: number; seq: number }>; before: string | null };
  /** A place of a text in a session: the item that begins at a record, and the number of places before it there. */
  type FoundPlace = { seq: number; nth: number; role: string; before: string; match: string; after: string };

  /** A share, as ./shares tells it; times are milliseconds since 1970. */
  type ShareFacts = { id: string; agent: string | null; session: string | null; title: string; created: number; expires: number; opened: boolean };

  /** The requests that the page sends. */
  type Requests = {
    initialize: { params: acp.InitializeRequest; result: acp.InitializeResponse };
    "session/new": { params: acp.NewSessionRequest; result: acp.NewSessionResponse };
    "session/load": { params: acp.LoadSessionRequest; result: acp.LoadSessionResponse };
    "session/fork": { params: acp.LoadSessionRequest; result: acp.ForkSessionResponse };
    "session/delete": { params: { sessionId: string }; result: {} };
    authenticate: { params: { methodId: string }; result: {} };
    "auth/status": { params: {}; result: acp.AuthStatusResponse };
    "session/set_title": { params: { sessionId: string; title: string }; result: { title: string } };
    "session/archive": { params: { sessionId: string }; result: {} };
    "session/unarchive": { params: { sessionId: string }; result: {} };
    "session/list": { params: { cursor?: string; archived?: "include" }; result: acp.ListSessionsResponse };
    "session/prompt": { params: acp.PromptRequest; result: acp.PromptResponse };
    "session/set_mode": { params: { sessionId: string; modeId: string }; result: {} };
    "session/set_config_option": {
      params: { sessionId: string; configId: string; value: string | boolean; type?: "boolean" };
      result: acp.SetSessionConfigOptionResponse;
    };
    "_session/steering": { params: acp.PromptRequest; result: { outcome: string } };
    "_dragoman/queue/change": { params: { sessionId: string; id: string; text?: string }; result: {} };
    "_dragoman/queue/resume": { params: { sessionId: string }; result: {} };
    "_dragoman/files": {
      params: { sessionId?: string; query: string };
      result: { files: string[]; isWhole: boolean };
    };
    "_dragoman/revert": {
      params: { sessionId: string; path: string; changes: page.Change[] };
      result: { exists: boolean };
    };
    "_dragoman/mcp/list": { params: { sessionId: string }; result: { servers: ListedServer[] } };
    "_dragoman/mcp/restart": { params: { sessionId: string; name: string }; result: {} };
    "_dragoman/question/link": {
      params: { sessionId: string; requestId: acp.RequestId; shown: ShownQuestion };
      result: { path: string; expires: number };
    };
    "_dragoman/sessions": {
      params: { groups?: SessionGroup[]; cwd?: string; search?: string; ids?: string[]; limit?: number; cursor?: string };
      result: SessionPage & { counts?: Record<SessionGroup, number>; busy?: SessionFacts[] };
    };
    "_dragoman/projects": {
      params: { cursor?: string };
      result: { projects: Array<SessionPage & { cwd: string }>; nextCursor?: string };
    };
    "_dragoman/introduce": { params: { cwd: string; sessionId?: string }; result: Introduction };
    "_dragoman/models/offers": { params: {}; result: Offers };
    "_dragoman/models/connect": { params: ModelWish & { cwd?: string; sessionId?: string }; result: Connected };
    "_dragoman/agents/choose": { params: { agent: string | null }; result: {} };
    "_dragoman/history": { params: { sessionId: string; before: string; to?: number }; result: HistoryPart };
    "_dragoman/settings": { params: { sessionId: string; before: string }; result: { updates: acp.SessionUpdate[] } };
    "_dragoman/find": { params: { sessionId: string; query: string }; result: { hits: FoundPlace[]; complete: boolean } };
    "_dragoman/search": { params: { query: string; searchId: number }; result: { searched: number; complete: boolean } };
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
    "auth/status_update": acp.AuthStatusResponse;
    "elicitation/complete": acp.CompleteElicitationNotification;
    "$/cancel_request": { requestId: acp.RequestId };
    "_dragoman/agent": AgentFacts;
    "_dragoman/session": SessionFacts;
    "_dragoman/queue": Queue & { sessionId: string };
    "_dragoman/settled": Settled;
    "_dragoman/found": { searchId: number; hits: SearchHit[] };
    "_dragoman/wire": { entries?: WireEntry[] };
  };
}
