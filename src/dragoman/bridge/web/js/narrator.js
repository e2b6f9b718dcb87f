/** Reads aloud what a person would otherwise have to watch for: an answer when it is whole, not piece by piece. */

const MOST_CHARS = 400;

export function narrate(app) {
  let session = null;
  let wasRunning = false;
  app.state.addEventListener("session", () => {
    const now = app.state.session;
    if (now !== session) [session, wasRunning] = [now, Boolean(now?.running)];
    const running = Boolean(now?.running);
    // A failure is read aloud where it is shown.
    if (wasRunning && !running && now.phase === "ready" && !now.failure)
      app.announce(`The agent has answered. ${lastWords(now.transcript)}`);
    if (!wasRunning && running) app.announce("The agent is working.");
    wasRunning = running;
  });
}

function lastWords(transcript) {
  const last = transcript.items.findLast((item) => item.role === "agent");
  const text = last?.blocks.map((block) => block.text ?? "").join("") ?? "";
  return text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text;
}
