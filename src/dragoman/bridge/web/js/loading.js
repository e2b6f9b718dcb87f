// Watches the page load: a file that does not arrive leads to one reload by itself, then to words and a button.
// It depends on no other file, and runs before all others: therefore it is not a module. A page that has begun
// removes #loading, and what fails after that is its own matter.
(() => {
  const RETRIED = "dragoman.load-retried";
  // A change of the network, the usual cause, takes a moment.
  const RETRY_MS = 500;
  let hasFailed = false;

  const isLoading = () => document.readyState === "loading" || document.getElementById("loading") !== null;

  function fail() {
    if (hasFailed || !isLoading()) return;
    hasFailed = true;
    if (mayRetry()) setTimeout(() => location.reload(), RETRY_MS);
    else document.documentElement.classList.add("load-failed");
  }

  // Without storage nothing guards against a page that reloads for ever.
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
      // Scripts may arrive where styles do not: then the page was tried again, and is not once more.
      if (hasFailed || !(event.target instanceof HTMLScriptElement) || event.target.type !== "module") return;
      try {
        sessionStorage.removeItem(RETRIED);
      } catch {
        // It was never set.
      }
    },
    true,
  );
  addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("#loading button")) location.reload();
  });
})();
