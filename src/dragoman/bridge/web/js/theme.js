// Not a module, because it must run before the first paint. Otherwise the page would flash in the other theme.
(() => {
  const theme = localStorage.getItem("dragoman.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
