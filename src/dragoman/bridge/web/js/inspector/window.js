/**
 * A scrolling area of many rows of equal height, of which only the visible ones exist.
 *
 * `draw(first, last)` is called when other rows become visible or `refresh` reports a change. The area stays at the
 * end if it is at the end.
 */

const SPARE_ROWS = 12;

export class RowWindow {
  #scheduled = false;
  #count = 0;
  #atEnd = true;

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} canvas
   * @param {number} rowHeight
   * @param {(first: number, last: number) => void} draw
   */
  constructor(scroller, canvas, rowHeight, draw) {
    this.scroller = scroller;
    this.canvas = canvas;
    this.rowHeight = rowHeight;
    this.draw = draw;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#schedule()).observe(scroller);
  }

  /** @param {number} count */
  setCount(count) {
    this.#count = count;
    this.canvas.style.height = `${count * this.rowHeight}px`;
    if (this.#atEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#schedule();
  }

  refresh() {
    this.#schedule();
  }

  /** @param {number} index */
  reveal(index) {
    const top = index * this.rowHeight;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.scroller.scrollTop = top + this.rowHeight - clientHeight;
    this.#atEnd = index === this.#count - 1;
    this.#schedule();
  }

  get pageRows() {
    return Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 1);
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    this.#atEnd = scrollTop + clientHeight >= scrollHeight - this.rowHeight;
    this.#schedule();
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      const first = Math.max(0, Math.floor(this.scroller.scrollTop / this.rowHeight) - SPARE_ROWS);
      const rows = Math.ceil(this.scroller.clientHeight / this.rowHeight) + 2 * SPARE_ROWS;
      this.draw(first, Math.min(this.#count, first + rows));
    });
  }
}
