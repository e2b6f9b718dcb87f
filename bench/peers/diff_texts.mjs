// Compares two files with the page's module, as its worker does, and prints the time in ms and the counts.
import { readFileSync } from "node:fs";
import { compareTexts } from "../../src/dragoman/bridge/web/js/conversation/diff.js";

const [before, after] = process.argv.slice(2).map((path) => readFileSync(path, "utf8"));
const started = performance.now();
const { added, removed } = compareTexts(before, after);
console.log(JSON.stringify({ ms: performance.now() - started, added, removed }));
