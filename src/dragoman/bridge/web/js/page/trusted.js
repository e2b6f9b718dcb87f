/** The page's only Trusted Types policy, for the markup of text/sanitize.js and the URLs of our workers. */

const WORKERS = new URL("../../worker/", import.meta.url).href;
const OURS = new Set(["notifications.js", "diff.js"].map((name) => WORKERS + name));

/** @type {any} */
const trustedTypes = Reflect.get(globalThis, "trustedTypes");
const policy = trustedTypes?.createPolicy("dragoman", {
  createHTML: (/** @type {string} */ html) => html,
  createScriptURL: (/** @type {string} */ url) => {
    if (!OURS.has(url)) throw new TypeError("The page starts no other workers than its own.");
    return url;
  },
});

/**
 * Trusted markup. Only text/sanitize.js may call this.
 *
 * @param {string} html
 */
export function trustMarkup(html) {
  return policy ? policy.createHTML(html) : html;
}

/** The URL of the service worker. */
export function serviceWorkerUrl() {
  return trustUrl("notifications.js");
}

/**
 * Start a worker of the page by its file name.
 *
 * @param {string} name
 */
export function startWorker(name) {
  return new Worker(trustUrl(name), { type: "module" });
}

/** @param {string} name */
function trustUrl(name) {
  const url = WORKERS + name;
  return policy ? policy.createScriptURL(url) : url;
}
