// What the agents on the official TypeScript SDK do, whatever carries their messages.
//
// The prompt text chooses the turn: `hello` streams three chunks, `permission` asks before a tool call,
// `wait` streams one chunk and then waits for `session/cancel`. A load replays two hundred numbers.

import { randomUUID } from "node:crypto";

import * as acp from "@agentclientprotocol/sdk";

const { agent: agentMethods, client: clientMethods } = acp.methods;

const TOOL_CALL = { toolCallId: "call-1", title: "Edit notes.txt", kind: "edit", status: "pending" };
const OPTIONS = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

/** How many updates a load replays. */
const REPLAYED = 200;

/** The cancellation of each session's current turn. */
const turnsBySession = new Map();

function update(client, sessionId, sessionUpdate) {
  return client.notify(clientMethods.session.update, { sessionId, update: sessionUpdate });
}

function say(client, sessionId, text) {
  return update(client, sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
}

const turns = {
  async hello(client, sessionId) {
    for (const text of ["one ", "two ", "three"]) await say(client, sessionId, text);
  },

  async permission(client, sessionId, turn) {
    await update(client, sessionId, { sessionUpdate: "tool_call", ...TOOL_CALL });
    const { outcome } = await client.request(clientMethods.session.requestPermission, {
      sessionId,
      toolCall: TOOL_CALL,
      options: OPTIONS,
    });
    if (outcome.outcome === "cancelled") turn.abort();
    const status = outcome.optionId === "yes" ? "completed" : "failed";
    await update(client, sessionId, {
      sessionUpdate: "tool_call_update",
      toolCallId: TOOL_CALL.toolCallId,
      status,
    });
    const said = outcome.outcome === "selected" ? `selected ${outcome.optionId}` : "cancelled";
    await say(client, sessionId, `outcome: ${said}`);
  },

  async wait(client, sessionId, turn) {
    await say(client, sessionId, "waiting");
    if (turn.signal.aborted) return;
    await new Promise((resolve) => turn.signal.addEventListener("abort", resolve, { once: true }));
  },
};

async function prompt({ params: { sessionId, prompt: blocks }, client }) {
  if (!turnsBySession.has(sessionId)) throw acp.RequestError.sessionNotFound(sessionId);
  const turn = new AbortController();
  turnsBySession.set(sessionId, turn);
  const text = blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  const run = turns[text.trim()];
  if (!run) throw acp.RequestError.invalidParams({ prompt: text, known: Object.keys(turns).sort() });
  await run(client, sessionId, turn);
  return { stopReason: turn.signal.aborted ? "cancelled" : "end_turn" };
}

async function load({ params: { sessionId }, client }) {
  turnsBySession.set(sessionId, new AbortController());
  for (let number = 0; number < REPLAYED; number += 1) await say(client, sessionId, `${number} `);
  return {};
}

/** One for each connection. */
export function makeAgent() {
  return acp
    .agent({ name: "typescript-sdk-agent" })
    .onRequest(agentMethods.initialize, () => ({
      protocolVersion: acp.PROTOCOL_VERSION,
      agentCapabilities: { loadSession: true },
      agentInfo: { name: "typescript-sdk-agent", version: "2.4.0" },
    }))
    .onRequest(agentMethods.session.new, () => {
      const sessionId = randomUUID();
      turnsBySession.set(sessionId, new AbortController());
      return { sessionId };
    })
    .onRequest(agentMethods.session.load, load)
    .onRequest(agentMethods.session.prompt, prompt)
    .onNotification(agentMethods.session.cancel, ({ params }) => turnsBySession.get(params.sessionId)?.abort());
}
