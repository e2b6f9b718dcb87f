/** When a session was last touched, as people say it. */

const DAY_MS = 86_400_000;

export function millis(moment) {
  const ms = typeof moment === "number" ? moment : Date.parse(moment ?? "");
  return Number.isNaN(ms) ? 0 : ms;
}

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

export function dayName(ms, now = Date.now()) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (ms >= midnight) return "Today";
  if (ms >= midnight - DAY_MS) return "Yesterday";
  if (ms >= midnight - 7 * DAY_MS) return "Last week";
  return "Earlier";
}
