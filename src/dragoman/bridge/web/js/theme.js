// Loaded before anything is drawn, so that no page flashes in the other theme. It is no module for that reason.
(() => {
  const theme = localStorage.getItem("dragoman.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
