/** A small menu at a button. Arrows select, Enter runs, and Escape or a click elsewhere closes it. */

import { el, find, icon } from "../page/dom.js";

/**
 * @typedef {{ icon: string, words: string, danger?: boolean, run: () => void }} MenuItem
 */

/**
 * Open a menu below `anchor`.
 *
 * @param {HTMLElement} anchor
 * @param {MenuItem[]} items
 * @param {string} label
 */
export function openMenu(anchor, items, label) {
  const menu = el("div", { class: "popup-menu", role: "menu", "aria-label": label, popover: "auto" });
  for (const item of items) menu.append(menuItem(menu, item));
  menu.addEventListener("keydown", (event) => move(event, menu));
  menu.addEventListener("toggle", (event) => {
    anchor.setAttribute("aria-expanded", String(event.newState === "open"));
    if (event.newState !== "closed") return;
    if (menu.contains(document.activeElement) || document.activeElement === document.body) anchor.focus();
    menu.remove();
  });
  // Outside of the list, which handles the same keys differently.
  (anchor.closest("aside, header") ?? document.body).append(menu);
  menu.showPopover();
  place(menu, anchor);
  find(menu, "button")?.focus();
}

/**
 * @param {HTMLElement} menu
 * @param {MenuItem} item
 */
function menuItem(menu, { icon: name, words, danger, run }) {
  const take = () => {
    menu.hidePopover();
    run();
  };
  return el("button", { type: "button", class: danger ? "menu-item danger" : "menu-item", role: "menuitem", tabindex: "-1", onclick: take },
    icon(name), words);
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement} menu
 */
function move(event, menu) {
  const items = [.../** @type {NodeListOf<HTMLElement>} */ (menu.querySelectorAll("button"))];
  const at = items.findIndex((item) => item === document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === "Tab") menu.hidePopover();
  if (next === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  items[(next + items.length) % items.length].focus();
}

/**
 * @param {HTMLElement} menu
 * @param {HTMLElement} anchor
 */
function place(menu, anchor) {
  const at = anchor.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = at.bottom + 4 + height <= innerHeight;
  menu.style.left = `${Math.max(8, Math.min(at.right - width, innerWidth - width - 8))}px`;
  menu.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - height - 4)}px`;
}
