/**
 * Scheduling of DOM work: once per frame and for a part of the frame, so that the page stays responsive.
 *
 * A job is a function. It receives the time (of `performance.now`) at which it should stop, and returns true if it
 * has more work.
 */

const BUDGET_MS = 8;
// A background tab has no frames, but should be up to date when it is shown again.
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

// A frame requested just before the tab was hidden fires only when the tab is shown again.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden" && scheduled) setTimeout(() => scheduled && run(), HIDDEN_MS);
});

// ── work that waits until its element is visible ────────────────────────────────────────────────────

const waiting = new WeakMap();

// In browsers without scrollMargin, a scrolling box has no margin.
const MARGIN = { rootMargin: "800px 0px", scrollMargin: "800px 0px" };

const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      const fn = waiting.get(entry.target);
      cancelNear(entry.target);
      fn?.();
    }
  },
  MARGIN,
);

/**
 * Call `fn` once, when the element approaches the visible part of the page.
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
