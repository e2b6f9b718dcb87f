/** Which sessions are shown, in which order, under which heading. */

import { dayName, millis } from "./time.js";

/** [{heading, hint, sessions}] of those that fit the search, latest first. */
export function groupSessions(sessions, { by, search }) {
  const wanted = search.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...sessions].filter((session) => fits(session, wanted));
  found.sort((one, other) => millis(other.updatedAt) - millis(one.updatedAt) || one.sessionId.localeCompare(other.sessionId));
  const groups = new Map();
  for (const session of found) {
    const name = by === "directory" ? session.cwd ?? "" : dayName(millis(session.updatedAt));
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(session);
  }
  return [...groups].map(([name, members]) => ({
    heading: by === "directory" ? lastName(name) : name,
    hint: by === "directory" ? name : "",
    sessions: members,
  }));
}

function fits({ title, cwd, sessionId }, words) {
  const text = `${title ?? ""} ${cwd ?? ""} ${sessionId}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export function lastName(path) {
  return path.replace(/[/\\]+$/, "").split(/[/\\]/).pop() || path || "Elsewhere";
}
