// An agent on the official TypeScript SDK that uses the MCP servers of its client over ACP.
//
// A prompt is the JSON of {"method", "params", "server", "cancel"}: a request to the client's MCP server, or to the
// server of that id; with `cancel` it is cancelled at the first notification. The answer is the JSON of {"result"},
// {"error"} or {"refused": code}, with the notifications that came before.

import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk/unstable";

const { agent: agentMethods, client: clientMethods } = acp.methods;

const mcp = new acp.McpOverAcpCaller({ clientInfo: { name: "typescript-sdk-mcp-agent", version: "2.4.0" } });
const serversBySession = new Map();

async function ask(client, sessionId, { method, params, server, cancel }) {
  const notifications = [];
  const cancelling = new AbortController();
  const id = server ?? serversBySession.get(sessionId).find(acp.isMcpServerAcp).serverId;
  const onNotification = (notification) => {
    notifications.push(notification);
    if (cancel) cancelling.abort();
  };
  try {
    return { ...(await mcp.request(client, id, method, params, { onNotification, signal: cancelling.signal })), notifications };
  } catch (error) {
    return { refused: error.code, notifications };
  }
}

acp
  .agent({ name: "typescript-sdk-mcp-agent" })
  .onRequest(agentMethods.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { mcpCapabilities: { acp: true } },
  }))
  .onRequest(agentMethods.session.new, ({ params }) => {
    const sessionId = randomUUID();
    serversBySession.set(sessionId, params.mcpServers);
    return { sessionId };
  })
  .onNotification(agentMethods.mcp.message, mcp.handleNotification)
  .onNotification(agentMethods.session.cancel, () => {})
  .onRequest(agentMethods.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    const text = JSON.stringify(await ask(client, sessionId, JSON.parse(prompt[0].text)));
    await client.notify(clientMethods.session.update, {
      sessionId,
      update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
    });
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
