// An agent on the experimental version 2 API of the official TypeScript SDK, over stdio, for the interop tests.
//
// The prompt text chooses the turn: `hello` streams three chunks, `permission` asks before a tool call, `wait` streams
// one chunk and then waits for `session/cancel`, `later` ends at once and works on by itself afterwards. A resume with
// a replay tells all messages again.

import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const { agent: agentMethods, client: clientMethods } = acp.methods;

const TOOL_CALL = { toolCallId: "call-1", title: "Edit notes.txt", kind: "edit", status: "pending" };
const OPTIONS = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

/** The messages of each session so far, and the cancellation of its current turn. */
const sessions = new Map();

function find(sessionId) {
  const session = sessions.get(sessionId);
  if (!session) throw acp.RequestError.resourceNotFound(sessionId);
  return session;
}

class Turn {
  constructor(client, sessionId) {
    this.client = client;
    this.sessionId = sessionId;
    this.session = find(sessionId);
    this.session.turn = this.cancelling = new AbortController();
    this.messageId = randomUUID();
  }

  update(update) {
    return this.client.notify(clientMethods.session.update, { sessionId: this.sessionId, update });
  }

  tell(update) {
    this.session.told.push(update);
    return this.update(update);
  }

  say(text) {
    const content = { type: "text", text };
    return this.tell({ sessionUpdate: "agent_message_chunk", messageId: this.messageId, content });
  }

  state(state, more = {}) {
    return this.update({ sessionUpdate: "state_update", state, ...more });
  }
}

const turns = {
  async hello(turn) {
    for (const text of ["one ", "two ", "three"]) await turn.say(text);
  },

  async permission(turn) {
    await turn.tell({ sessionUpdate: "tool_call_update", ...TOOL_CALL });
    await turn.state("requires_action");
    const { outcome } = await turn.client.request(clientMethods.session.requestPermission, {
      sessionId: turn.sessionId,
      title: "May I edit notes.txt?",
      subject: { type: "tool_call", toolCall: TOOL_CALL },
      options: OPTIONS,
    });
    await turn.state("running");
    if (outcome.outcome === "cancelled") turn.cancelling.abort();
    const status = outcome.optionId === "yes" ? "completed" : "failed";
    await turn.tell({ sessionUpdate: "tool_call_update", toolCallId: TOOL_CALL.toolCallId, status });
    await turn.say(outcome.outcome === "selected" ? `outcome: selected ${outcome.optionId}` : "outcome: cancelled");
  },

  async wait(turn) {
    await turn.say("waiting");
    if (turn.cancelling.signal.aborted) return;
    await new Promise((resolve) => turn.cancelling.signal.addEventListener("abort", resolve, { once: true }));
  },

  async later(turn) {
    await turn.say("done for now");
    setImmediate(async () => {
      await turn.state("running");
      turn.messageId = randomUUID();
      await turn.say("and one more thing");
      await turn.state("idle", { stopReason: "end_turn" });
    });
  },
};

async function work(turn, run) {
  await turn.state("running");
  await run(turn);
  await turn.state("idle", { stopReason: turn.cancelling.signal.aborted ? "cancelled" : "end_turn" });
}

async function prompt({ params: { sessionId, prompt: content }, client }) {
  const turn = new Turn(client, sessionId);
  const run = turns[content.map((block) => (block.type === "text" ? block.text : "")).join("")];
  if (!run) throw acp.RequestError.invalidParams({ known: Object.keys(turns) });
  const messageId = randomUUID();
  await turn.tell({ sessionUpdate: "user_message", messageId, content });
  setImmediate(() => void work(turn, run));
  return { messageId };
}

async function resume({ params: { sessionId, replayFrom }, client }) {
  const { told } = find(sessionId);
  if (replayFrom) {
    for (const update of told) await client.notify(clientMethods.session.update, { sessionId, update });
  }
  const state = { sessionUpdate: "state_update", state: "idle" };
  await client.notify(clientMethods.session.update, { sessionId, update: state });
  return {};
}

acp
  .agent({ name: "typescript-v2-agent" })
  .onRequest(agentMethods.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    capabilities: { session: {} },
    info: { name: "typescript-v2-agent", version: "2.4.0" },
  }))
  .onRequest(agentMethods.session.new, () => {
    const sessionId = randomUUID();
    sessions.set(sessionId, { told: [], turn: new AbortController() });
    return { sessionId };
  })
  .onRequest(agentMethods.session.list, () => ({
    sessions: [...sessions.keys()].map((sessionId) => ({ sessionId, cwd: "/" })),
  }))
  .onRequest(agentMethods.session.resume, resume)
  .onRequest(agentMethods.session.close, ({ params }) => {
    sessions.get(params.sessionId)?.turn.abort();
    return {};
  })
  .onRequest(agentMethods.session.prompt, prompt)
  .onNotification(agentMethods.session.cancel, ({ params }) => find(params.sessionId).turn.abort())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
