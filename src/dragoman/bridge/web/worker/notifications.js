/**
 * The service worker of the page, which exists because phone browsers need one for notifications.
 *
 * It only opens the page at a session when the user clicks on a notification. It answers no requests
 * of the page, stores nothing and has no token. Its scope is its directory, so that it controls no page.
 */

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data));
});

/** @param {{ agent: string | null, session: string }} place */
async function show({ agent, session }) {
  // Only this bridge's page: another bridge may have another path on the same host.
  const home = new URL("../../", registration.scope).href;
  const fragment = `#${[agent ?? "", session].map(encodeURIComponent).join("/")}`;
  const windows = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const pages = windows.filter(({ url }) => url.split(/[?#]/)[0] === home);
  const page = pages.find(({ url }) => url.endsWith(fragment)) ?? pages[0];
  if (!page) {
    await clients.openWindow(home + fragment);
    return;
  }
  page.postMessage({ open: { agent, session } });
  // A browser may refuse to focus a window. The session is still opened in it.
  await page.focus().catch(() => {});
}
