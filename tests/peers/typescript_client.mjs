// A client on the official TypeScript SDK that runs one scenario against an agent and prints what it saw.
//
//   typescript_client.mjs --cwd DIR [options] -- CMD...
//
// Stdout is one JSON object, the report of typescript_scenario.mjs; with exit status 1 if it is an error.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk";

import { TIMEOUT_MS, describe, parseArguments, printReport, runScenario } from "./typescript_scenario.mjs";

const CLOSE_MS = 2_000;

async function startAgent([program, ...args]) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  await once(child, "spawn");
  child.on("error", () => {}); // a failed kill; the scenario has its own error by then
  return child;
}

async function stopAgent(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.stdin.end();
  const timers = [
    setTimeout(() => child.kill("SIGTERM"), CLOSE_MS),
    setTimeout(() => child.kill("SIGKILL"), 2 * CLOSE_MS),
  ];
  await exited;
  timers.forEach(clearTimeout);
}

async function main() {
  let child;
  setTimeout(() => {
    child?.kill("SIGKILL");
    printReport({ error: `timed out after ${TIMEOUT_MS / 1000} s` });
    process.exit(1);
  }, TIMEOUT_MS).unref();

  try {
    const scenario = parseArguments(process.argv.slice(2));
    child = await startAgent(scenario.command);
    const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
    const report = await runScenario(stream, scenario).finally(() => stopAgent(child));
    printReport(report);
  } catch (error) {
    printReport({ error: describe(error) });
    process.exitCode = 1;
  }
}

await main();
