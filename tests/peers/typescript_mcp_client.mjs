// A client on the official TypeScript SDK with an MCP server inside it, on the official SDK too, over ACP.
//
//   typescript_mcp_client.mjs --cwd DIR --prompt TEXT... [--cancel] -- CMD...
//   typescript_mcp_client.mjs --cwd DIR --prompt TEXT... [--cancel] --at URL --token TOKEN
//
// The server has the tools `echo`, `count` (tells of progress), `ask` (wants input), `fail` (its handler throws),
// `wait` (until it is cancelled) and `grow` (adds the tool `grown`). Stdout is one JSON object: {"advertised",
// "prompts": [{"stopReason", "updates"}], "methods": [MCP methods that came], "cancelled"}, or {"error"}.
// With --cancel the last prompt is cancelled as soon as `wait` runs.

import { parseArgs } from "node:util";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { setImmediate as nextTick } from "node:timers/promises";

import * as acp from "@agentclientprotocol/sdk/unstable";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { fromMcpServer } from "@agentclientprotocol/sdk/experimental/mcp-server";
import { McpServer, acceptedContent, inputRequired } from "@modelcontextprotocol/server";
import { WebSocket } from "ws";
import * as z from "zod/v4";

import { TIMEOUT_MS, describe, printReport } from "./typescript_scenario.mjs";

const { agent: agentMethods, client: clientMethods } = acp.methods;

const SIZE = { type: "object", properties: { size: { type: "string" } }, required: ["size"] };

function say(text) {
  return { content: [{ type: "text", text }] };
}

/** A fresh server for each request, as the SDK wants it; what lasts is in `state`. */
function makeServer(state) {
  const server = new McpServer(
    { name: "inside", version: "1.0.0" },
    { capabilities: { tools: { listChanged: true } }, instructions: "Ask before you weigh." },
  );
  server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, async ({ text }) => say(text));
  server.registerTool("count", { inputSchema: z.object({}) }, async (_, ctx) => {
    const { progressToken } = ctx.mcpReq._meta ?? {};
    for (const progress of [1, 2]) {
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 2 } });
    }
    return say("counted");
  });
  server.registerTool("ask", { inputSchema: z.object({}) }, async (_, ctx) => {
    const given = acceptedContent(ctx.mcpReq.inputResponses, "size");
    if (given) return say(`size ${given.size}`);
    const size = inputRequired.elicit({ message: "Which size?", requestedSchema: SIZE });
    return inputRequired({ inputRequests: { size } });
  });
  server.registerTool("fail", { inputSchema: z.object({}) }, async () => {
    throw new Error("the scale is broken");
  });
  server.registerTool("wait", { inputSchema: z.object({}) }, async (_, ctx) => {
    state.onWait();
    await new Promise((resolve) => ctx.mcpReq.signal.addEventListener("abort", resolve, { once: true }));
    state.cancelled = true;
    return say("never seen");
  });
  server.registerTool("grow", { inputSchema: z.object({}) }, async () => {
    state.grown = true;
    state.changed();
    return say("grew");
  });
  if (state.grown) server.registerTool("grown", { inputSchema: z.object({}) }, async () => say("I am new"));
  return server;
}

async function run(stream, { cwd, prompts, cancel }) {
  const state = { grown: false, cancelled: false, onWait: () => {}, changed: () => {} };
  const listedGrown = new Promise((resolve) => (state.onListedGrown = resolve));
  const methods = [];
  let updates = [];
  const mcp = new acp.McpOverAcpProvider();
  const app = acp
    .client({ name: "typescript-sdk-mcp-client" })
    .onRequest(clientMethods.mcp.message, mcp.handleRequest)
    .onNotification(clientMethods.session.update, ({ params }) => updates.push(params.update))
    .onRequest(clientMethods.elicitation.create, () => ({ action: "accept", content: { size: "XL" } }))
    .onRequest(clientMethods.session.requestPermission, ({ params }) => ({
      outcome: { outcome: "selected", optionId: params.options.find(({ kind }) => kind.startsWith("allow_")).optionId },
    }));
  return app.connectWith(stream, async (agent) => {
    const { agentCapabilities } = await agent.request(agentMethods.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { elicitation: { form: {} } },
    });
    const inside = fromMcpServer(() => makeServer(state));
    state.changed = () => inside.notify.toolsChanged();
    const registered = mcp.registerServer(agent, {
      name: "inside",
      handler: async (context) => {
        methods.push(context.method);
        const outcome = await inside.handler(context);
        if (context.method === "tools/list" && state.grown) state.onListedGrown();
        return outcome;
      },
    });
    const { sessionId } = await agent.request(agentMethods.session.new, { cwd, mcpServers: [registered.declaration] });
    const report = { advertised: agentCapabilities.mcpCapabilities, prompts: [], methods };
    for (const [index, text] of prompts.entries()) {
      updates = [];
      if (cancel && index === prompts.length - 1) {
        state.onWait = () => agent.notify(agentMethods.session.cancel, { sessionId });
      }
      const { stopReason } = await agent.request(agentMethods.session.prompt, {
        sessionId,
        prompt: [{ type: "text", text }],
      });
      await nextTick();
      if (state.grown) await listedGrown;
      report.prompts.push({ stopReason, updates });
    }
    await registered.dispose();
    return { ...report, cancelled: state.cancelled };
  });
}

function startAgent([program, ...args]) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  return { stream, kill: () => child.kill("SIGKILL"), end: () => child.stdin.end() };
}

function reachAgent(url, token) {
  const headers = { Authorization: `Bearer ${token}` };
  const stream = createWebSocketStream(url.replace("http", "ws"), { headers, WebSocket });
  return { stream, kill: () => {}, end: () => process.exit() };
}

async function main() {
  const split = process.argv.includes("--") ? process.argv.indexOf("--") : process.argv.length;
  const { values } = parseArgs({
    args: process.argv.slice(2, split),
    options: {
      cwd: { type: "string" },
      prompt: { type: "string", multiple: true, default: [] },
      cancel: { type: "boolean", default: false },
      at: { type: "string" },
      token: { type: "string" },
    },
  });
  const agent = values.at ? reachAgent(values.at, values.token) : startAgent(process.argv.slice(split + 1));
  setTimeout(() => {
    agent.kill();
    printReport({ error: `timed out after ${TIMEOUT_MS / 1000} s` });
    process.exit(1);
  }, TIMEOUT_MS).unref();
  try {
    printReport(await run(agent.stream, { cwd: values.cwd, prompts: values.prompt, cancel: values.cancel }));
  } catch (error) {
    printReport({ error: describe(error) });
    process.exitCode = 1;
  } finally {
    agent.end();
  }
}

await main();
