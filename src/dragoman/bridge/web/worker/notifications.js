/**
 * The service worker of the page: it is there because browsers of phones show notifications through one alone.
 *
 * It opens the page at a session when a person clicks on a notification, and does nothing else. It answers no requests
 * of the page, keeps nothing, and knows no token. Its scope is its own directory, so that it controls no page.
 */

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data));
});

/** @param {{ agent: string | null, session: string }} place */
async function show({ agent, session }) {
  // The page of this bridge: another one may be below another path of the same address.
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
  // A browser may refuse to bring a window to the front; the session is open in it all the same.
  await page.focus().catch(() => {});
}
