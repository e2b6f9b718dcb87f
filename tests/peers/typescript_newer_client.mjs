// A client on the official TypeScript SDK that uses the newer methods of ACP v1 with an agent, and prints what it saw.
//
//   typescript_newer_client.mjs CWD CMD...
//
// Stdout is one JSON object: the answers by name, and the updates of the session, as the SDK's validators let them
// through.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk/unstable";

const { agent: agentMethods, client: clientMethods } = acp.methods;
const [cwd, program, ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
const updates = [];
const authUpdates = [];

const app = acp
  .client({ name: "typescript-sdk-newer-client" })
  .onNotification(clientMethods.session.update, ({ params }) => {
    updates.push(params.update);
  })
  .onNotification(clientMethods.auth.statusUpdate, ({ params }) => {
    authUpdates.push(params);
  })
  .onRequest(clientMethods.session.requestPermission, () => ({ outcome: { outcome: "cancelled" } }));

const code = (error) => ({ code: error.code, data: error.data });

const report = await app.connectWith(
  acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)),
  async (agent) => {
    const initialize = await agent.request(agentMethods.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { session: { notices: {}, compaction: {} }, subagents: {} },
      clientInfo: { name: "typescript-sdk-newer-client", version: "2.4.0" },
    });
    const authStatus = await agent.request(agentMethods.auth.status, {});
    const { sessionId } = await agent.request(agentMethods.session.new, {
      cwd,
      mcpServers: [],
      systemPrompt: { mode: "append", content: [{ type: "text", text: "Speak French." }] },
    });
    const say = (text) => agent.request(agentMethods.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    await say("hi");
    const title = await agent.request(agentMethods.session.setTitle, { sessionId, title: " My  title " });
    await say("/compact");
    const open = await agent.request(agentMethods.session.status, { sessionId });
    await agent.request(agentMethods.session.archive, { sessionId });
    const saved = await agent.request(agentMethods.session.status, { sessionId });
    const listed = await agent.request(agentMethods.session.list, {});
    const archived = await agent.request(agentMethods.session.list, { archived: "only" });
    await agent.request(agentMethods.session.unarchive, { sessionId });
    const again = await agent.request(agentMethods.session.list, { archived: "exclude" });
    const unknown = await agent.request(agentMethods.session.status, { sessionId: "nobody" }).catch(code);
    return { initialize, authStatus, sessionId, title, open, saved, listed, archived, again, unknown, updates, authUpdates };
  },
);
child.stdin.end();
console.log(JSON.stringify(report));
