// The scenario that the clients on the official TypeScript SDK run, whatever carries their messages.
//
//   --cwd DIR [--load ID] [--prompt TEXT]... [--answer yes|no|cancel] [--cancel-after N] -- CMD...
//
// The report is {"initialize", "sessionId", "loaded": [updates], "prompts": [{"stopReason", "updates", "permissions"}]},
// or {"error"}. Updates and permission requests are what the SDK's validators let through; responses are as they came,
// since the SDK does not validate them.

import { setImmediate as nextTick } from "node:timers/promises";
import { parseArgs } from "node:util";

import * as acp from "@agentclientprotocol/sdk";

export const TIMEOUT_MS = 30_000;

/** How long nothing must come before all has come. */
const QUIET_MS = 200;

const OPTION_KIND = { yes: "allow_", no: "reject_" };

const { agent: agentMethods, client: clientMethods } = acp.methods;

export function parseArguments(argv) {
  const split = argv.includes("--") ? argv.indexOf("--") : argv.length;
  const { values } = parseArgs({
    args: argv.slice(0, split),
    options: {
      cwd: { type: "string" },
      load: { type: "string" },
      prompt: { type: "string", multiple: true, default: [] },
      answer: { type: "string", default: "yes" },
      "cancel-after": { type: "string" },
    },
  });
  const command = argv.slice(split + 1);
  if (!values.cwd) throw new Error("--cwd DIR is needed");
  if (!["yes", "no", "cancel"].includes(values.answer)) throw new Error("--answer is yes, no or cancel");
  if (command.length === 0) throw new Error("an agent command is needed after --");
  const cancelAfter = values["cancel-after"] === undefined ? undefined : Number(values["cancel-after"]);
  return { cwd: values.cwd, load: values.load, prompts: values.prompt, answer: values.answer, cancelAfter, command };
}

/** What one prompt brought, and whether and when to cancel it. */
function beginTurn(cancelAfter) {
  return { cancelAfter, cancelled: false, updates: [], permissions: [] };
}

function answerPermission(turn, answer, { toolCall, options }) {
  turn.permissions.push({ toolCall, options });
  // Once a turn is cancelled, the client must answer its permission requests with this outcome.
  if (turn.cancelled || answer === "cancel") return { outcome: { outcome: "cancelled" } };
  const { optionId } = options.find((option) => option.kind.startsWith(OPTION_KIND[answer]));
  return { outcome: { outcome: "selected", optionId } };
}

/** Answers and updates come on two connections over HTTP, and which is read first is not said. */
export async function untilQuiet(updates) {
  let count = -1;
  while (count !== updates.length || count === 0) {
    count = updates.length;
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  }
}

export async function runScenario(stream, { cwd, load, prompts, answer, cancelAfter }, settle = nextTick) {
  let turn = beginTurn(undefined);
  const app = acp
    .client({ name: "typescript-sdk-client" })
    .onNotification(clientMethods.session.update, async ({ params, agent }) => {
      turn.updates.push(params.update);
      if (turn.updates.length !== turn.cancelAfter) return;
      turn.cancelled = true;
      await agent.notify(agentMethods.session.cancel, { sessionId: params.sessionId });
    })
    .onRequest(clientMethods.session.requestPermission, ({ params }) =>
      answerPermission(turn, answer, params),
    );

  return app.connectWith(stream, async (agent) => {
    const initialize = await agent.request(agentMethods.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {},
      clientInfo: { name: "typescript-sdk-client", version: "2.4.0" },
    });
    const report = { initialize, sessionId: load, loaded: null, prompts: [] };
    if (load === undefined) {
      report.sessionId = (await agent.request(agentMethods.session.new, { cwd, mcpServers: [] })).sessionId;
    } else {
      await agent.request(agentMethods.session.load, { sessionId: load, cwd, mcpServers: [] });
      await settle(turn.updates);
      report.loaded = turn.updates;
    }
    const { sessionId } = report;
    for (const [index, text] of prompts.entries()) {
      turn = beginTurn(index === prompts.length - 1 ? cancelAfter : undefined);
      const { stopReason } = await agent.request(agentMethods.session.prompt, {
        sessionId,
        prompt: [{ type: "text", text }],
      });
      // The SDK settles a response without waiting for the handlers of the updates that came before it.
      await nextTick();
      report.prompts.push({ stopReason, updates: turn.updates, permissions: turn.permissions });
    }
    return report;
  });
}

export function describe(error) {
  if (error instanceof acp.RequestError) {
    return `${error.code} ${error.message}: ${JSON.stringify(error.data)}`;
  }
  return `${error?.name ?? "Error"}: ${error?.message ?? error}`;
}

export function printReport(report) {
  console.log(JSON.stringify(report));
}
