/** The button that cycles through light, dark and system theme. theme.js reads the choice at the next visit. */

import { fill, icon, iconButton } from "../page/dom.js";

/** @typedef {"auto" | "light" | "dark"} Theme */

const KEY = "dragoman.theme";
/** @type {Record<Theme, Theme>} */
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const FACES = {
  auto: ["screen", "Appearance: system"],
  light: ["sun", "Appearance: light"],
  dark: ["moon", "Appearance: dark"],
};

export function appearanceButton() {
  const button = iconButton("screen", "Appearance", () => choose(NEXT[current()]));
  const choose = (/** @type {Theme} */ theme) => {
    if (theme === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
    apply();
  };
  const apply = () => {
    const theme = current();
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const [drawing, label] = FACES[theme];
    button.setAttribute("aria-label", label);
    button.title = label;
    button.dataset.icon = drawing;
    fill(button, icon(drawing));
  };
  apply();
  return button;
}

/** @returns {Theme} */
function current() {
  const theme = localStorage.getItem(KEY);
  return theme === "light" || theme === "dark" ? theme : "auto";
}
