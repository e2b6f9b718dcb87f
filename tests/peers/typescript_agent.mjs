// An agent on the official TypeScript SDK, over stdio, for the interop tests.

import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk";

import { makeAgent } from "./typescript_turns.mjs";

makeAgent().connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
