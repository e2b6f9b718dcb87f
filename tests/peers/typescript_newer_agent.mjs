// An agent on the official TypeScript SDK that has the newer methods and updates of ACP v1, for the interop tests.
//
// A prompt is answered with the system prompt of the session, after a notice, a compaction and a subagent.

import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk/unstable";

const { agent: agentMethods, client: clientMethods } = acp.methods;
const sessions = new Map();
let loggedIn = false;

const authStatus = () => ({
  state: loggedIn ? "authenticated" : "unauthenticated",
  accounts: loggedIn ? [{ label: "Test account", active: true }] : [],
});

function find(sessionId) {
  const session = sessions.get(sessionId);
  if (session === undefined) throw acp.RequestError.resourceNotFound(sessionId);
  return session;
}

acp
  .agent({ name: "typescript-sdk-newer-agent" })
  .onRequest(agentMethods.initialize, ({ params }) => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: {
      auth: { status: {} },
      sessionCapabilities: {
        list: {},
        archive: {},
        status: {},
        title: {},
        systemPrompt: { mode: { override: {} } },
      },
      _meta: { client: params.clientCapabilities },
    },
    authMethods: [{ id: "badge", name: "Show the badge" }],
  }))
  .onRequest(agentMethods.auth.status, () => authStatus())
  .onRequest(agentMethods.authenticate, async ({ client }) => {
    loggedIn = true;
    await client.notify(clientMethods.auth.statusUpdate, authStatus());
    return {};
  })
  .onRequest(agentMethods.session.new, ({ params }) => {
    const sessionId = randomUUID();
    sessions.set(sessionId, { cwd: params.cwd, systemPrompt: params.systemPrompt, archived: false, open: true });
    return { sessionId };
  })
  .onRequest(agentMethods.session.list, ({ params: { archived = "exclude" } }) => ({
    sessions: [...sessions]
      .filter(([, session]) => archived === "include" || session.archived === (archived === "only"))
      .map(([sessionId, { cwd, title, archived }]) => ({ sessionId, cwd, title, archived })),
  }))
  .onRequest(agentMethods.session.setTitle, ({ params }) => {
    find(params.sessionId).title = params.title.trim();
    return { title: params.title.trim() };
  })
  .onRequest(agentMethods.session.archive, ({ params }) => {
    Object.assign(find(params.sessionId), { archived: true, open: false });
    return {};
  })
  .onRequest(agentMethods.session.unarchive, ({ params }) => {
    find(params.sessionId).archived = false;
    return {};
  })
  .onRequest(agentMethods.session.status, ({ params }) => ({ status: find(params.sessionId).open ? "open" : "saved" }))
  .onNotification(agentMethods.session.cancel, () => {})
  .onRequest(agentMethods.session.prompt, async ({ params: { sessionId }, client }) => {
    const send = (update, id = sessionId) => client.notify(clientMethods.session.update, { sessionId: id, update });
    const text = (words) => ({ type: "text", text: words });
    await send({ sessionUpdate: "notice", severity: "warning", title: "Slow today", description: "The model is busy." });
    await send({ sessionUpdate: "compaction_update", compactionId: "c", status: "in_progress" });
    await send({ sessionUpdate: "compaction_summary_chunk", compactionId: "c", content: text("In short.") });
    await send({ sessionUpdate: "compaction_update", compactionId: "c", status: "completed" });
    const child = `${sessionId}-child`;
    await send({ sessionUpdate: "subagent_update", sessionId: child, title: "Reader", state: { state: "running" } });
    await send({
      sessionUpdate: "session_message",
      messageId: "m",
      senderSessionId: sessionId,
      recipientSessionId: child,
      content: [text("Read it.")],
    });
    await send({ sessionUpdate: "agent_message_chunk", content: text("I read.") }, child);
    await send({ sessionUpdate: "subagent_update", sessionId: child, state: { state: "idle", stopReason: "end_turn" } });
    const { systemPrompt } = find(sessionId);
    await send({ sessionUpdate: "agent_message_chunk", content: text(JSON.stringify(systemPrompt ?? null)) });
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
