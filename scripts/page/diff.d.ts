/** The types of diffs, which the worker has as well as the page. */
declare namespace page {
  /** Lines around a change: a letter per line in `kinds`, the lines in `text`. `skipped` lines are before it. */
  type Hunk = {
    skipped: number;
    oldStart: number;
    newStart: number;
    added: number;
    removed: number;
    kinds: string;
    text: string;
  };

  /** The difference of two texts. */
  type Comparison = { added: number; removed: number; hunks: Hunk[]; skippedAfter: number };

  /** A line of a difference. */
  type Row = { kind: "same" | "del" | "add"; old: number | null; new: number | null; text: string };
}
