// Runs before anything is drawn, so that no page flashes in the other theme: therefore it is not a module.
(() => {
  const theme = localStorage.getItem("dragoman.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
