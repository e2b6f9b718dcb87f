/** Which sessions are shown, in which order, under which heading. */

/**
 * [{heading, hint, sessions, fold}] of those that fit the search, latest first. Sessions of programs (`dragoman run`)
 * and archived ones are groups of their own, the last ones, which are folded. Subagents belong to the session that made
 * them, and are in no group.
 *
 * @param {bridge.SessionFacts[]} sessions
 * @param {{ by: string, search: string }} wanted
 */
export function groupSessions(sessions, { by, search }) {
  const wanted = search.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...sessions].filter((session) => !session.parent && fits(session, wanted));
  found.sort((one, other) => millis(other.updatedAt) - millis(one.updatedAt) || one.sessionId.localeCompare(other.sessionId));
  /** @type {Map<string, bridge.SessionFacts[]>} */
  const groups = new Map();
  const folds = FOLDS.map(({ heading, has }) => ({ heading, hint: "", sessions: found.filter(has), fold: heading })).filter((one) => one.sessions.length > 0);
  for (const session of found.filter((one) => !FOLDS.some(({ has }) => has(one)))) {
    const name = by === "directory" ? session.cwd ?? "" : dayName(millis(session.updatedAt));
    groups.set(name, [...(groups.get(name) ?? []), session]);
  }
  const made = [...groups].map(([name, members]) => ({
    heading: by === "directory" ? lastName(name) : name,
    hint: by === "directory" ? name : "",
    sessions: members,
    fold: "",
  }));
  return [...made, ...folds];
}

/** @type {Array<{ heading: string, has: (session: bridge.SessionFacts) => boolean }>} */
const FOLDS = [
  { heading: "Runs", has: (session) => !session.archived && Boolean(session.origin) },
  { heading: "Archived", has: (session) => Boolean(session.archived) },
];

/** @typedef {ReturnType<typeof groupSessions>[number]} SessionGroup */

/**
 * @param {bridge.SessionFacts} session
 * @param {string[]} words
 */
function fits({ title, cwd }, words) {
  const text = `${title ?? ""} ${lastName(cwd ?? "")}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** @param {string} path */
export function lastName(path) {
  return path.replace(/[/\\]+$/, "").split(/[/\\]/).pop() || path || "Elsewhere";
}

// ── when a session was last touched, as people say it ─────────────────────────────────────────────

const DAY_MS = 86_400_000;

/** @param {string | number | null | undefined} moment */
export function millis(moment) {
  const ms = typeof moment === "number" ? moment : Date.parse(moment ?? "");
  return Number.isNaN(ms) ? 0 : ms;
}

/**
 * @param {number} ms
 * @param {number} now
 */
export function ago(ms, now = Date.now()) {
  const minutes = Math.floor((now - ms) / 60_000);
  if (ms === 0) return "";
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  const date = new Date(ms);
  if (now - ms < 7 * DAY_MS) return date.toLocaleDateString(undefined, { weekday: "short" });
  const sameYear = date.getFullYear() === new Date(now).getFullYear();
  return date.toLocaleDateString(undefined, { day: "numeric", month: "short", year: sameYear ? undefined : "numeric" });
}

/**
 * @param {number} ms
 * @param {number} now
 */
export function dayName(ms, now = Date.now()) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (ms >= midnight) return "Today";
  if (ms >= midnight - DAY_MS) return "Yesterday";
  if (ms >= midnight - 7 * DAY_MS) return "Last week";
  return "Earlier";
}
