// Watches the page load. A file that fails to load causes one automatic reload, then a message with a button.
// Not a module, because it must run first and not depend on other files. A page that has started
// removes #loading, and later failures are not handled here.
(() => {
  const RETRIED = "dragoman.load-retried";
  // The usual cause is a network change, which takes a moment.
  const RETRY_MS = 500;
  let hasFailed = false;

  const isLoading = () => document.readyState === "loading" || document.getElementById("loading") !== null;

  function fail() {
    if (hasFailed || !isLoading()) return;
    hasFailed = true;
    if (mayRetry()) setTimeout(() => location.reload(), RETRY_MS);
    else document.documentElement.classList.add("load-failed");
  }

  // Without storage, the page could reload for ever, so it does not reload.
  function mayRetry() {
    try {
      if (sessionStorage.getItem(RETRIED) !== null) return false;
      sessionStorage.setItem(RETRIED, "yes");
      return true;
    } catch {
      return false;
    }
  }

  addEventListener("error", fail, true);
  addEventListener("unhandledrejection", fail);
  document.addEventListener(
    "load",
    (event) => {
      // Scripts may load although styles failed. After one reload, do not reload again.
      if (hasFailed || !(event.target instanceof HTMLScriptElement) || event.target.type !== "module") return;
      try {
        sessionStorage.removeItem(RETRIED);
      } catch {
        // Storage is not available, so the mark was never set.
      }
    },
    true,
  );
  addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("#loading button")) location.reload();
  });
})();
