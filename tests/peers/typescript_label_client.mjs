// A client on the official TypeScript SDK that prompts an agent at a URL, gives the session a title and archives it.
//
//   typescript_label_client.mjs CWD CAPABILITIES URL TOKEN
//
// The report has the answers, and by session the updates that the SDK's validators let through.

import * as acp from "@agentclientprotocol/sdk/unstable";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";

import { TIMEOUT_MS, describe, printReport } from "./typescript_scenario.mjs";

setTimeout(() => {
  printReport({ error: `timed out after ${TIMEOUT_MS / 1000} s` });
  process.exit(1);
}, TIMEOUT_MS).unref();

const { agent: agentMethods, client: clientMethods } = acp.methods;
const { session: methods } = agentMethods;
const [cwd, capabilities, url, token] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const stream = createWebSocketStream(url.replace("http", "ws"), { headers, WebSocket });
const updates = [];

const app = acp.client({ name: "typescript-label-client" }).onNotification(clientMethods.session.update, ({ params }) => {
  updates.push(params);
});

try {
  const report = await app.connectWith(stream, async (agent) => {
    const { agentCapabilities } = await agent.request(agentMethods.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: JSON.parse(capabilities),
    });
    const { sessionId } = await agent.request(methods.new, { cwd, mcpServers: [] });
    await agent.request(methods.prompt, { sessionId, prompt: [{ type: "text", text: "Read it all" }] });
    const titled = await agent.request(methods.setTitle, { sessionId, title: " My work " });
    const open = await agent.request(methods.status, { sessionId });
    await agent.request(methods.archive, { sessionId });
    const listed = await agent.request(methods.list, {});
    const archived = await agent.request(methods.list, { archived: "only" });
    await agent.request(methods.unarchive, { sessionId });
    const again = await agent.request(methods.list, {});
    const unknown = await agent.request(methods.status, { sessionId: "none" }).catch((error) => error.code);
    return { agentCapabilities, sessionId, titled, open, listed, archived, again, unknown };
  });
  printReport({ ...report, updates });
  process.exit(0);
} catch (error) {
  printReport({ error: describe(error) });
  process.exit(1);
}
