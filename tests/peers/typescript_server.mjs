// The agent of the interop tests on the official TypeScript SDK's server, over HTTP and WebSocket.
//
// The first line on stdout is {"url"}; it ends with its stdin.

import { createServer } from "node:http";

import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { WebSocketServer } from "ws";

import { makeAgent } from "./typescript_turns.mjs";

const acp = new AcpServer({ createAgent: makeAgent });
const handle = createNodeHttpHandler(acp);
const server = createServer((request, response) => {
  if (request.url === "/acp") handle(request, response);
  else response.writeHead(404).end();
});
server.on("upgrade", createNodeWebSocketUpgradeHandler(acp, new WebSocketServer({ noServer: true })));
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/acp` }));
});
process.stdin.resume().on("end", () => process.exit(0));
