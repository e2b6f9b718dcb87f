// The leanest agent the official TypeScript SDK allows, for the benchmarks.
//
// The first text block of a prompt is a JSON object, every field optional: `chunks` updates of `size`
// characters each, with a turn of the event loop after each if `yield` is true, then one update of `bytes`
// characters. None of them means an answer at once.

import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { setImmediate as nextTick } from "node:timers/promises";
import { pathToFileURL } from "node:url";

// The SDK is installed once, beside the interop peers.
const require = createRequire(new URL("../../tests/peers/package.json", import.meta.url));
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));

const SESSION_ID = "0".repeat(32); // as long as a real one, so that lines are of a real length

const { agent: agentMethods, client: clientMethods } = acp.methods;

function say(client, sessionId, text) {
  return client.notify(clientMethods.session.update, {
    sessionId,
    update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
  });
}

async function prompt({ params: { sessionId, prompt: blocks }, client }) {
  const order = JSON.parse(blocks[0].text);
  const text = "x".repeat(order.size ?? 0);
  for (let number = 0; number < (order.chunks ?? 0); number++) {
    await say(client, sessionId, text);
    if (order.yield) await nextTick();
  }
  if (order.bytes) await say(client, sessionId, "x".repeat(order.bytes));
  return { stopReason: "end_turn" };
}

acp
  .agent()
  .onRequest(agentMethods.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION }))
  .onRequest(agentMethods.session.new, () => ({ sessionId: SESSION_ID }))
  .onRequest(agentMethods.session.prompt, prompt)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
