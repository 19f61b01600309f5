// The colours that somebody chose for this browser, before anything is drawn.
const chosen = localStorage.getItem("redrive-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
