/**
 * Joins two transcripts of consecutive parts of a history. The result is the transcript of the whole history.
 *
 * The later part began without the earlier one, so some of its items continue earlier items: a message, updates of a
 * tool call, a subagent. They move to the earlier item. The later part also has the end of a turn that began earlier.
 */

/** @typedef {import("./transcript.js").Transcript} Transcript */

/**
 * Put the items of an earlier part in front of a later one. Return the items of the later part that changed.
 *
 * @param {Transcript} earlier
 * @param {Transcript} later
 */
export function join(earlier, later) {
  const { gone, changed } = moveUpdates(earlier, later);
  for (const id of later.withdrawn) earlier.withdraw(id);
  later.adopt(earlier).forEach((item) => changed.add(item));
  later.costUnknown.unshift(...earlier.costUnknown);
  joinTurns(earlier, later);
  later.items = joinMessages([...earlier.items, ...later.items], earlier.items.length, gone, changed);
  later.items.forEach((item, n) => (item.n = n));
  later.tools = new Map([...later.tools, ...earlier.tools]);
  later.entities = new Map([...later.entities, ...earlier.entities]);
  later.withdrawn = earlier.withdrawn;
  return changed;
}

/**
 * Move the updates of items that began earlier to the earlier items.
 *
 * @param {Transcript} earlier
 * @param {Transcript} later
 */
function moveUpdates(earlier, later) {
  /** @type {Set<page.Item>} */
  const gone = new Set();
  /** @type {Set<page.Item>} */
  const changed = new Set();
  for (const [id, item] of later.tools) {
    const first = earlier.tools.get(id);
    if (!first) continue;
    Object.assign(first.call, item.given);
    Object.assign(first.given, item.given);
    for (const [name, text] of item.terminals) first.terminals.set(name, (first.terminals.get(name) ?? "") + text);
    if (item.exit) first.exit = item.exit;
    gone.add(item);
  }
  for (const [key, item] of later.entities) {
    if (!earlier.entities.has(key)) continue;
    for (const update of item.updates) earlier.apply(update);
    gone.add(item);
  }
  return { gone, changed };
}

/**
 * Remove the items that are gone. Messages that then follow each other become one if the second continues the first.
 *
 * @param {page.Item[]} items
 * @param {number} border the number of earlier items
 * @param {Set<page.Item>} gone
 * @param {Set<page.Item>} changed
 */
function joinMessages(items, border, gone, changed) {
  /** @type {page.Item[]} */
  const kept = [];
  let isBorder = false;
  items.forEach((item, n) => {
    if (n === border) isBorder = true;
    if (gone.has(item)) {
      isBorder = true;
      return;
    }
    const last = kept.at(-1);
    if (isBorder && last && item.type === "message" && continuesMessage(last, item)) {
      append(last, item);
      changed.add(last);
      return;
    }
    isBorder = false;
    kept.push(item);
  });
  return kept;
}

/**
 * @param {page.Item} last
 * @param {page.MessageItem} item
 * @returns {last is page.MessageItem}
 */
function continuesMessage(last, item) {
  return last.type === "message" && last.role === item.role && last.role !== "user" && last.messageId === item.messageId;
}

/**
 * @param {page.MessageItem} last
 * @param {page.MessageItem} item
 */
function append(last, item) {
  for (const block of item.blocks) {
    const end = last.blocks.at(-1);
    if (block.type === "text" && end?.type === "text") end.text += block.text;
    else last.blocks.push(block);
  }
  last.time = item.time ?? last.time;
  last.void ||= item.void;
  last.version += 1;
}

/**
 * @param {Transcript} earlier
 * @param {Transcript} later
 */
function joinTurns(earlier, later) {
  const { head, firstTurn } = later;
  const open = earlier.turn;
  if (head && open) {
    if (!open.isOver) open.until = head.until ?? open.until;
    open.cost = head.cost ?? open.cost;
    if (head.isOver) Object.assign(open, { tokens: head.tokens, isOver: true });
  }
  if (firstTurn) earlier.endTurn(); // the later turn has ended it
  if (later.turn === head) later.turn = open;
  later.firstTurn = earlier.firstTurn ?? firstTurn;
  later.head = earlier.head;
}
