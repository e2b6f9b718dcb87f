/** The page's only Trusted Types policy, for the markup of text/sanitize.js and the URL of our worker. */

const WORKER = "./static/worker/notifications.js";

/** @type {any} */
const trustedTypes = Reflect.get(globalThis, "trustedTypes");
const policy = trustedTypes?.createPolicy("dragoman", {
  createHTML: (/** @type {string} */ html) => html,
  createScriptURL: (/** @type {string} */ url) => {
    if (url !== WORKER) throw new TypeError("The page starts no other worker than its own.");
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
export function workerAddress() {
  return policy ? policy.createScriptURL(WORKER) : WORKER;
}
