// Brings numbers up to date in place. Rows never enter, leave or move by themselves: a bar says what is new.
const SILENT_MS = 30000;
const SAID_MS = 10000;
const dot = document.getElementById("dot");
let stream = null;
let heard = 0;
let pending = false;
let busy = false;
let tag = null;
let fresh = null;
let lastSaid = 0;

function show(state, text) {
  if (!dot) return;
  dot.className = "dot " + state;
  dot.setAttribute("aria-label", text);
  dot.title = text;
  dot.lastElementChild.textContent = text;
  document.body.classList.toggle("stale-numbers", state === "stale");
}

// What must not be disturbed: text that is marked, a form that was begun, a menu that is open.
function occupied() {
  const marked = getSelection();
  if (marked && !marked.isCollapsed) return true;
  if (document.querySelector("main details.menu[open], main details.filter-form[open]")) return true;
  const fields = document.querySelectorAll("main input:not([type=hidden]):not([type=checkbox]), main textarea, main select");
  return [...fields].some((field) => field.value !== (field.defaultValue ?? field.value) || field === document.activeElement);
}

function sameKind(from, to) {
  return from.nodeType === to.nodeType && from.nodeName === to.nodeName;
}

function morph(from, to) {
  if (from.isEqualNode(to) || from === document.activeElement) return;
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE || from.matches("form, input, textarea, select, iframe, button")) return;
  for (const { name, value } of [...to.attributes]) if (name !== "open" && from.getAttribute(name) !== value && name !== "class") from.setAttribute(name, value);
  const kept = ["here", "settled"].filter((name) => from.classList.contains(name));
  if (from.getAttribute("class") !== to.getAttribute("class")) {
    from.setAttribute("class", to.getAttribute("class") ?? "");
    from.classList.add(...kept);
  }
  children(from, to);
}

function children(from, to) {
  const [old, now] = [[...from.childNodes], [...to.childNodes]];
  now.forEach((node, at) => {
    const twin = node.id ? from.querySelector(`:scope > #${CSS.escape(node.id)}`) : old[at];
    if (twin && sameKind(twin, node)) morph(twin, node);
    else if (old[at]) old[at].replaceWith(node.cloneNode(true));
    else from.append(node.cloneNode(true));
  });
  old.slice(now.length).forEach((node) => node.remove());
}

// Rows that are here are brought up to date, those that are gone are dimmed, new ones are counted.
function rows(from, to) {
  const known = new Map([...from.children].filter((row) => row.id).map((row) => [row.id, row]));
  const order = [...to.children].filter((row) => row.id);
  let added = 0;
  for (const row of order) {
    const twin = known.get(row.id);
    if (twin) { twin.classList.remove("settled"); morph(twin, row); } else added += 1;
  }
  const there = new Set(order.map((row) => row.id));
  for (const [id, row] of known) if (!there.has(id)) row.classList.add("settled");
  const before = [...known.keys()].filter((id) => there.has(id));
  const after = order.map((row) => row.id).filter((id) => known.has(id));
  const moved = after.filter((id, at) => id !== before[at]).length ? 1 : 0;
  return [added, moved];
}

function bar(added, moved, next) {
  let place = document.getElementById("fresh");
  if (!added && !moved) return place?.remove();
  if (!place) {
    place = document.createElement("p");
    place.id = "fresh";
    place.className = "fresh-bar on";
    document.getElementById("main").prepend(place);
  }
  fresh = next;
  const what = [added ? `${added} new` : "", moved ? "order changed" : ""].filter(Boolean).join(", ");
  const button = document.createElement("button");
  button.className = "plainly small";
  button.textContent = "show";
  button.addEventListener("click", unfold);
  place.replaceChildren(what + ": ", button);
  if (Date.now() - lastSaid > SAID_MS) {
    lastSaid = Date.now();
    document.getElementById("said").textContent = what;
  }
}

function unfold() {
  if (fresh) location.reload();
}

async function refresh() {
  if (busy) { pending = true; return; }
  if (occupied()) { pending = true; return show("live waiting", "waiting"); }
  busy = true;
  pending = false;
  try {
    const ids = [...document.querySelectorAll("main [id], header [id], footer [id]")].map((part) => part.id);
    const headers = { "X-Parts": ids.slice(0, 50).join(",").slice(0, 2000) };
    if (tag) headers["If-None-Match"] = tag;
    const answer = await fetch(location.href, { headers, redirect: "manual" });
    if (answer.status === 304) return;
    if (!answer.ok) throw new Error(String(answer.status));
    tag = answer.headers.get("ETag");
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (occupied()) { pending = true; return; }
    apply(next);
    show("live", "live");
  } catch {
    pending = true;
  } finally {
    busy = false;
  }
}

function apply(next) {
  let [added, moved] = [0, 0];
  for (const part of document.querySelectorAll("main [id], header [id], footer [id]")) {
    const twin = next.getElementById(part.id);
    if (!twin || part.closest("form") && !part.matches("[data-rows]") || part.parentElement.closest("main [id]:not(main), [data-rows]") && !part.matches("[data-rows]")) continue;
    if (part.matches("[data-rows]")) { const [a, m] = rows(part, twin); added += a; moved += m; }
    else if (part.id !== "main" && part.id !== "dot" && part.id !== "said") morph(part, twin);
  }
  bar(added, moved, next);
}

function open() {
  if (!dot || document.hidden || stream) return;
  stream = new EventSource("/events");
  const alive = () => { heard = Date.now(); if (!pending) show("live", "live"); };
  stream.addEventListener("alive", alive);
  stream.addEventListener("open", alive);
  let first = true;
  stream.addEventListener("change", () => { alive(); if (!first || pending) refresh(); first = false; });
}

function close() {
  stream?.close();
  stream = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : (open(), refresh())));
document.addEventListener("redrive:show", unfold);
setInterval(() => {
  if (document.hidden || !dot) return;
  if (Date.now() - heard > SILENT_MS) show("stale", "stale since " + new Date(heard).toISOString().slice(11, 19));
  if (stream && stream.readyState === EventSource.CLOSED) { close(); open(); }
  if (pending && !busy) refresh();
}, 1000);
heard = Date.now();
open();
