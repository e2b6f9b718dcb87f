// What typescript_client.mjs does, with an agent at a URL, over the official TypeScript SDK's HTTP or WebSocket client.
//
//   typescript_url_client.mjs --cwd DIR [options] -- http|websocket URL TOKEN

import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";

import { TIMEOUT_MS, describe, parseArguments, printReport, runScenario, untilQuiet } from "./typescript_scenario.mjs";

setTimeout(() => {
  printReport({ error: `timed out after ${TIMEOUT_MS / 1000} s` });
  process.exit(1);
}, TIMEOUT_MS).unref();

function open([way, url, token]) {
  const headers = { Authorization: `Bearer ${token}` };
  if (way === "http") return createHttpStream(url, { headers });
  return createWebSocketStream(url.replace("http", "ws"), { headers, WebSocket });
}

try {
  const scenario = parseArguments(process.argv.slice(2));
  const settle = scenario.command[0] === "http" ? untilQuiet : undefined;
  printReport(await runScenario(open(scenario.command), scenario, settle));
  process.exit(0);
} catch (error) {
  printReport({ error: describe(error) });
  process.exit(1);
}
