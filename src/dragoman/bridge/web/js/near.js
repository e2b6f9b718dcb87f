/** Work that can wait until somebody could see it. */

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

/** Call `fn` once, when the element comes near what is visible. */
export function whenNear(element, fn) {
  waiting.set(element, fn);
  observer.observe(element);
}

export function cancelNear(element) {
  waiting.delete(element);
  observer.unobserve(element);
}
