// A client on the experimental version 2 API of the official TypeScript SDK, which runs one scenario against an agent.
//
//   --cwd DIR [--resume ID] [--prompt TEXT]... [--answer yes|no|cancel] [--cancel-after N] [--cancel-call] -- CMD...
//
// It drives turns by their states, closes the session at the end and prints a report: {"initialize", "sessionId",
// "resumed": [updates], "prompts": [{"messageId", "stopReason", "updates", "permissions"}], "listed": [ids]}, or
// {"error"}. N counts the chunks of the agent's messages; --cancel-call cancels the first tool call that offers it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { parseArgs } from "node:util";

import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const TIMEOUT_MS = 30_000;
const KINDS = { yes: "allow_", no: "reject_" };
const { agent: agentMethods, client: clientMethods } = acp.methods;

const split = process.argv.indexOf("--");
const command = process.argv.slice(split + 1);
const { values: options } = parseArgs({
  args: process.argv.slice(2, split),
  options: {
    cwd: { type: "string" },
    resume: { type: "string" },
    prompt: { type: "string", multiple: true, default: [] },
    answer: { type: "string", default: "yes" },
    "cancel-after": { type: "string" },
    "cancel-call": { type: "boolean", default: false },
  },
});

let turn = beginTurn(0);

function beginTurn(cancelAfter) {
  const made = { cancelAfter, updates: [], permissions: [], chunks: 0, hasRun: false, hasCancelledCall: false };
  made.ended = new Promise((resolve) => (made.end = resolve));
  return made;
}

async function takeUpdate({ params: { sessionId, update }, agent }) {
  turn.updates.push(update);
  if (update.sessionUpdate === "agent_message_chunk") turn.chunks += 1;
  if (turn.chunks > 0 && turn.chunks === turn.cancelAfter) {
    turn.chunks = Infinity;
    await agent.notify(agentMethods.session.cancel, { sessionId });
  }
  if (options["cancel-call"] && update.capabilities?.cancel && !turn.hasCancelledCall) {
    turn.hasCancelledCall = true;
    await agent.request(agentMethods.toolCall.cancel, { sessionId, toolCallId: update.toolCallId });
  }
  if (update.sessionUpdate !== "state_update") return;
  if (update.state === "running") turn.hasRun = true;
  if (update.state === "idle" && turn.hasRun) turn.end(update.stopReason);
}

function answerPermission({ params: { title, subject, options: offered } }) {
  turn.permissions.push({ title, subject });
  if (options.answer === "cancel") return { outcome: { outcome: "cancelled" } };
  const { optionId } = offered.find((option) => option.kind.startsWith(KINDS[options.answer]));
  return { outcome: { outcome: "selected", optionId } };
}

async function converse(agent) {
  const initialize = await agent.request(agentMethods.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    capabilities: {},
    info: { name: "typescript-v2-client", version: "2.4.0" },
  });
  const report = { initialize, resumed: null, prompts: [] };
  const place = { cwd: options.cwd, mcpServers: [] };
  if (options.resume === undefined) {
    report.sessionId = (await agent.request(agentMethods.session.new, place)).sessionId;
  } else {
    report.sessionId = options.resume;
    const request = { ...place, sessionId: options.resume, replayFrom: { type: "start" } };
    await agent.request(agentMethods.session.resume, request);
    report.resumed = turn.updates;
  }
  const { sessionId } = report;
  for (const [index, text] of options.prompt.entries()) {
    turn = beginTurn(index === options.prompt.length - 1 ? Number(options["cancel-after"] ?? 0) : 0);
    const prompt = [{ type: "text", text }];
    const { messageId } = await agent.request(agentMethods.session.prompt, { sessionId, prompt });
    const stopReason = await turn.ended;
    report.prompts.push({ messageId, stopReason, updates: turn.updates, permissions: turn.permissions });
  }
  await agent.request(agentMethods.session.close, { sessionId });
  const { sessions } = await agent.request(agentMethods.session.list, { cwd: options.cwd });
  report.listed = sessions.map((session) => session.sessionId);
  return report;
}

const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS);
try {
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const report = await acp
    .client({ name: "typescript-v2-client" })
    .onNotification(clientMethods.session.update, takeUpdate)
    .onRequest(clientMethods.session.requestPermission, answerPermission)
    .connectWith(stream, converse);
  process.stdout.write(`${JSON.stringify(report)}\n`);
} catch (error) {
  const data = error instanceof acp.RequestError ? ` ${JSON.stringify(error.data)}` : "";
  process.stdout.write(`${JSON.stringify({ error: `${error.message}${data}` })}\n`);
  process.exitCode = 1;
}
const exited = once(child, "exit");
child.stdin.end();
if (child.exitCode === null) await exited;
clearTimeout(timer);
