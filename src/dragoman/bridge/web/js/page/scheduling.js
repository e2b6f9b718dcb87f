/**
 * Document work, once a frame and only for a part of it, so that the page answers while much arrives.
 *
 * A job is a function that is given the time (of `performance.now`) at which it should stop, and returns true when it
 * has more to do.
 */

const BUDGET_MS = 8;
// A tab in the background has no frames, but should be up to date when it comes back.
const HIDDEN_MS = 500;

const jobs = new Set();
let scheduled = false;

/** @param {(deadline: number) => boolean} job */
export function onFrame(job) {
  jobs.add(job);
  schedule();
}

function schedule() {
  if (scheduled) return;
  scheduled = true;
  if (document.visibilityState === "hidden") setTimeout(run, HIDDEN_MS);
  else requestAnimationFrame(run);
}

function run() {
  scheduled = false;
  const deadline = performance.now() + BUDGET_MS;
  for (const job of [...jobs]) {
    jobs.delete(job);
    if (job(deadline)) jobs.add(job);
  }
  if (jobs.size > 0) schedule();
}

// A frame that was asked for just before the tab was hidden comes only when it is shown again.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden" && scheduled) setTimeout(() => scheduled && run(), HIDDEN_MS);
});

// ── work that waits until its element can be seen ───────────────────────────────────────────────────

const waiting = new WeakMap();

const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      const fn = waiting.get(entry.target);
      cancelNear(entry.target);
      fn?.();
    }
  },
  { rootMargin: "800px 0px" },
);

/**
 * Call `fn` once, when the element comes near the visible part of the page.
 *
 * @param {Element} element
 * @param {() => void} fn
 */
export function whenNear(element, fn) {
  waiting.set(element, fn);
  observer.observe(element);
}

/** @param {Element} element */
export function cancelNear(element) {
  waiting.delete(element);
  observer.unobserve(element);
}
