/** Which messages are shown. */

export const NO_FILTER = Object.freeze({ text: "", method: "", direction: "", session: "", errorsOnly: false });

/** The test for a filter, or null when everything passes. */
export function makeTest({ text, method, direction, session, errorsOnly }) {
  const tests = [];
  const sought = text.trim().toLowerCase();
  if (sought) tests.push((entry) => entry.line.toLowerCase().includes(sought) || entry.name.toLowerCase().includes(sought));
  if (method) tests.push((entry) => entry.name === method);
  if (direction) tests.push((entry) => entry.direction === direction);
  if (session) tests.push((entry) => entry.sessionId === session);
  if (errorsOnly) tests.push((entry) => entry.failed);
  return tests.length === 0 ? null : (entry) => tests.every((test) => test(entry));
}
