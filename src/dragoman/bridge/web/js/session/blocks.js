/** The content blocks of an item. Texts in a row are one block. */

/** @param {page.Block} block */
export function textOf(block) {
  return block.type === "text" ? block.text : "";
}

/**
 * Append a block, or its text to the last one.
 *
 * @param {page.Block[]} blocks
 * @param {acp.ContentBlock} content
 */
export function addBlock(blocks, content) {
  const last = blocks.at(-1);
  if (content.type === "text" && last?.type === "text") last.text += content.text ?? "";
  else if (content.type === "text") blocks.push({ type: "text", text: content.text ?? "" });
  else blocks.push(content);
}

/**
 * Replace the content of an item. undefined keeps it, and null or an empty list clears it.
 *
 * @param {any} item
 * @param {string} field
 * @param {acp.ContentBlock[] | null | undefined} content
 */
export function replace(item, field, content) {
  item.version += 1;
  if (content === undefined) return item;
  item.round += 1;
  item[field] = [];
  for (const block of content ?? []) addBlock(item[field], block);
  return item;
}

/**
 * Append to the content of an item.
 *
 * @param {any} item
 * @param {string} field
 * @param {acp.ContentBlock} content
 */
export function grow(item, field, content) {
  item.version += 1;
  addBlock(item[field], content ?? { type: "text", text: "" });
  return item;
}
