/** The work on a message of the user: its time, tokens and cost. */

/**
 * @param {page.MessageItem | null} item
 * @param {number | null} time
 * @param {acp.Cost | null | undefined} cost the cost before, undefined if it is not known yet
 * @returns {page.OpenTurn}
 */
export function openTurn(item, time, cost) {
  return { item, from: time, until: time, tokens: null, costBefore: cost, cost: cost ?? null, isOver: false };
}

/**
 * Add up the work of a turn. Return its message if its summary changed.
 *
 * @param {page.OpenTurn} turn
 */
export function sumUp(turn) {
  if (!turn.item) return null;
  const ms = turn.from && turn.until ? turn.until - turn.from : null;
  const summed = { ms, tokens: turn.tokens, cost: spent(turn) };
  if (JSON.stringify(summed) === JSON.stringify(turn.item.turn)) return null;
  turn.item.turn = summed;
  turn.item.version += 1;
  return turn.item;
}

/**
 * The cost of a turn, if the agent reports a growing sum.
 *
 * @param {page.OpenTurn} turn
 * @returns {acp.Cost | null}
 */
function spent({ costBefore, cost }) {
  if (!cost || costBefore === undefined || (costBefore && costBefore.currency !== cost.currency)) return null;
  const amount = cost.amount - (costBefore?.amount ?? 0);
  return amount > 0 ? { amount, currency: cost.currency } : null;
}
