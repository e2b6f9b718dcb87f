/** The groups of shown sessions, with their headings and order. */

/**
 * [{heading, hint, sessions, fold}] of the sessions that match the search, latest first. Sessions of programs
 * (`dragoman run`) and archived ones are in separate, folded groups at the end. Subagents belong to their parent
 * session and are in no group.
 *
 * @param {bridge.SessionFacts[]} sessions
 * @param {{ by: string, search: string }} wanted
 */
export function groupSessions(sessions, { by, search }) {
  const words = wordsOf(search);
  const found = sessions.filter((session) => !session.parent && fits(session, words)).sort(comparePlaces);
  /** @type {Map<string, SessionGroup>} */
  const groups = new Map();
  for (const session of found.filter((one) => groupOf(one) === "sessions")) {
    const name = by === "directory" ? projectOf(session.cwd) : dayName(millis(session.updatedAt));
    const group = groups.get(name) ?? { heading: by === "directory" ? lastName(name) : name, hint: by === "directory" ? name : "", sessions: [], fold: null };
    group.sessions.push(session);
    groups.set(name, group);
  }
  const folds = FOLDS.map(({ name, heading }) => ({ heading, hint: "", sessions: found.filter((one) => groupOf(one) === name), fold: name }));
  return [...groups.values(), ...folds];
}

/** @type {Array<{ name: "runs" | "archived", heading: string }>} */
const FOLDS = [
  { name: "runs", heading: "Runs" },
  { name: "archived", heading: "Archived" },
];

/** @typedef {{ heading: string, hint: string, sessions: bridge.SessionFacts[], fold: "runs" | "archived" | null }} SessionGroup */

/**
 * The bridge's group of a session.
 *
 * @param {bridge.SessionFacts} session
 * @returns {bridge.SessionGroup}
 */
export function groupOf({ archived, origin }) {
  if (archived) return "archived";
  return origin ? "runs" : "sessions";
}

/**
 * Compare two sessions: latest first, and equal times in the bridge's order.
 *
 * @param {bridge.SessionFacts} one
 * @param {bridge.SessionFacts} other
 */
export function comparePlaces(one, other) {
  const apart = millis(other.updatedAt) - millis(one.updatedAt);
  if (apart !== 0 || one.sessionId === other.sessionId) return apart;
  return one.sessionId > other.sessionId ? -1 : 1;
}

/** @param {string} search */
export function wordsOf(search) {
  return search.trim().toLowerCase().split(/\s+/).filter(Boolean);
}

/**
 * Whether the title and project of a session contain all words, like the bridge's search.
 *
 * @param {bridge.SessionFacts} session
 * @param {string[]} words
 */
export function fits({ title, cwd }, words) {
  const text = `${title ?? ""} ${lastName(cwd ?? "")}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/**
 * The directory of a session, by which it is grouped.
 *
 * @param {string | undefined} cwd
 */
export function projectOf(cwd) {
  return (cwd ?? "").replace(/(.)[/\\]+$/, "$1");
}

/** @param {string} path */
export function lastName(path) {
  return path.replace(/[/\\]+$/, "").split(/[/\\]/).pop() || path || "Other";
}

// ── readable times ────────────────────────────────────────────────────────────────────────────────

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
