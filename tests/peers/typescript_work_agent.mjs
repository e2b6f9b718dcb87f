// An agent on the official TypeScript SDK whose one turn has a compaction, a subagent and a message to it.
//
// It sends them only to a client that takes them, and knows nothing of titles, the archive or the status of sessions.

import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk/unstable";

const { agent: agentMethods, client: clientMethods } = acp.methods;

let takes = {};

const text = (words) => ({ type: "text", text: words });

async function prompt({ params: { sessionId }, client }) {
  const update = (session, sessionUpdate, fields) =>
    client.notify(clientMethods.session.update, { sessionId: session, update: { sessionUpdate, ...fields } });
  if (takes.session?.notices) await update(sessionId, "notice", { severity: "warning", title: "Slow today" });
  if (takes.session?.compaction) {
    await update(sessionId, "compaction_update", { compactionId: "c", status: "in_progress" });
    await update(sessionId, "compaction_summary_chunk", { compactionId: "c", content: text("So far so good.") });
    await update(sessionId, "compaction_update", { compactionId: "c", status: "completed" });
  }
  if (takes.subagents) {
    const child = `${sessionId}-child`;
    await update(sessionId, "subagent_update", { sessionId: child, title: "Reader", state: { state: "running" } });
    await update(child, "agent_message_chunk", { content: text("I read.") });
    const parties = { senderSessionId: child, recipientSessionId: sessionId };
    await update(sessionId, "session_message", { messageId: "m", ...parties, content: [text("It is read.")] });
  }
  await update(sessionId, "tool_call", { toolCallId: "t", title: "Look", name: "look_around", status: "completed" });
  await update(sessionId, "agent_message_chunk", { content: text("done") });
  return { stopReason: "end_turn" };
}

acp
  .agent({ name: "typescript-work-agent" })
  .onRequest(agentMethods.initialize, ({ params }) => {
    takes = params.clientCapabilities ?? {};
    return { protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} };
  })
  .onRequest(agentMethods.session.new, () => ({ sessionId: randomUUID() }))
  .onRequest(agentMethods.session.prompt, prompt)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
