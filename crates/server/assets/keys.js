// Shortcuts. They open pages and forms, and send only what can be taken back.
const rows = () => [...document.querySelectorAll("main [data-href]")];
const go = { o: "Overview", c: "Causes", r: "Replays", a: "Alerts", p: "Pipelines", l: "Letters", y: "Activity" };
const HELP = [
  ["j k", "next, previous row"], ["x", "tick it"], ["Enter", "open it"], ["[ ]", "previous, next of the list you came from"], ["t", "try"], [".", "show what is new"], ["r", "replay"], ["a", "assign me"],
  ["m", "mute"], ["e", "resolve"], ["c", "copy as CLI"], ["/", "search"],
  ["g o, g c, g r, g a", "overview, causes, replays, alerts"], ["g p, g l, g y", "pipelines, letters, activity"], ["Esc", "close"],
];
let going = false;

const isOff = () => localStorage.getItem("redrive-keys") === "off";
const here = () => document.activeElement?.closest("main [data-href]") ?? document.querySelector("main .here");

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(here());
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
  document.querySelector("main .here")?.classList.remove("here");
  next.classList.add("here");
  next.scrollIntoView({ block: "nearest" });
  next.querySelector("a[href]")?.focus({ preventScroll: true });
}

// Lists that were looked at, by what they are of: what is opened from one has neighbours there.
const kindOf = (path) => path.split("/").slice(0, -1).join("/");
addEventListener("pagehide", () => {
  const kinds = Map.groupBy ? Map.groupBy(rows().map((row) => row.dataset.href), kindOf) : new Map();
  for (const [kind, list] of kinds) if (list.length > 1) sessionStorage.setItem(`redrive-list ${kind}`, JSON.stringify(list));
});

function neighbour(step) {
  const list = JSON.parse(sessionStorage.getItem(`redrive-list ${kindOf(location.pathname)}`) ?? "[]");
  const next = list[list.indexOf(location.pathname) + step];
  if (list.includes(location.pathname) && next) location.assign(next);
}

function help() {
  const known = document.querySelector(".help-box");
  if (known) return known.close();
  const make = (kind, fields) => Object.assign(document.createElement(kind), fields);
  // The browser gives the focus back to where it was.
  const box = make("dialog", { className: "help-box", ariaLabel: "Shortcuts", onclose: () => box.remove() });
  const list = make("dl", { className: "keys" });
  for (const [key, what] of HELP) list.append(make("dt", { textContent: key }), make("dd", { textContent: what }));
  box.append(list, make("button", { textContent: "Close", onclick: () => box.close() }));
  document.body.append(box);
  box.showModal();
}

for (const button of document.querySelectorAll("[data-shows-keys]")) button.addEventListener("click", help);

// The commands of the row that somebody is at, else those of the page: one is copied, of several one is chosen.
function copyCommand() {
  const ofPage = (box) => !box.closest("[data-href]");
  const box = here()?.querySelector("[data-copies]") ?? [...document.querySelectorAll("main [data-copies]")].find(ofPage);
  if (!box) return;
  if (!box.open) box.dataset.keyed = "1";
  box.querySelector("summary").click();
}

// What a key presses: of the row that somebody is at, else of the page, but never of another row. Who is at none has what most people do next.
function keyed(key) {
  const meant = `[data-key~="${CSS.escape(key)}"]:not([disabled])`;
  const isMeant = (one) => !one.closest("[data-href]") || (!here() && one.matches(".primary"));
  return here()?.querySelector(meant) ?? [...document.querySelectorAll("main " + meant)].find(isMeant);
}

const press = {
  j: () => move(1),
  k: () => move(-1),
  x: () => here()?.querySelector("input[type=checkbox]")?.click(),
  Enter: () => document.activeElement === document.body && here() && location.assign(here().dataset.href),
  "[": () => neighbour(-1),
  "]": () => neighbour(1),
  "/": () => document.getElementById("q")?.focus(),
  "?": help,
  c: copyCommand,
  ".": () => document.dispatchEvent(new Event("redrive:show")),
  g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=checkbox]), textarea, select");
  if (isOff() || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const place = going && document.getElementById("tab-" + go[event.key]);
  if (place) return place.click();
  if (document.querySelector(".help-box") && event.key !== "?") return;
  const own = event.key.length === 1 && keyed(event.key);
  if (own) {
    event.preventDefault();
    // What is done to ticked rows is done to the one that somebody is at, where none is ticked.
    const isTicked = () => !own.closest("[data-selection]") || own.form.querySelector("[name=id]:checked");
    if (!isTicked()) here()?.querySelector("[name=id]")?.click();
    if (isTicked()) own.click();
    else document.dispatchEvent(new CustomEvent("redrive:say", { detail: "Tick a row, or go to one with j, first" }));
    return;
  }
  if (press[event.key]) {
    if (event.key !== "Enter") event.preventDefault();
    press[event.key]();
  }
});

for (const button of document.querySelectorAll("[data-toggle-keys]")) {
  const label = () => { button.textContent = isOff() ? "turn shortcuts on" : "turn shortcuts off"; };
  button.addEventListener("click", () => { localStorage.setItem("redrive-keys", isOff() ? "on" : "off"); label(); });
  label();
}

for (const part of document.querySelectorAll("[data-scripted]")) part.hidden = false;
for (const choice of document.querySelectorAll("[data-theme-choice]")) {
  choice.value = localStorage.getItem("redrive-theme") ?? "";
  choice.addEventListener("change", () => {
    localStorage.setItem("redrive-theme", choice.value);
    if (choice.value) document.documentElement.dataset.theme = choice.value;
    else delete document.documentElement.dataset.theme;
  });
}
