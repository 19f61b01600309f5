// Brings numbers up to date in place. Rows never enter, leave or move by themselves: a bar says what is new.
const SAID_MS = 10000;
// What answers a form cannot be asked for again, so that it is not live.
const dot = document.querySelector("#dot[data-silent-ms]");
const silentMs = Number(dot?.dataset.silentMs);
const tags = new Map();
let stream = null;
let heard = Date.now();
let pending = false;
let busy = false;
let lastSaid = 0;
let signedOut = false;
let updated = Date.now();

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
  if (document.querySelector("details.menu[open], details.more[open], main details.filter-form[open]")) return true;
  const fields = document.querySelectorAll("main input:not([type=hidden]):not([type=checkbox]):not([type=radio]), main textarea");
  const changed = (field) => field.value !== field.defaultValue;
  return [...fields].some((field) => changed(field) || field === document.activeElement);
}

function morph(from, to) {
  if (from.isEqualNode(to) || from === document.activeElement) return;
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE || from.matches("form, input, textarea, select, iframe, button")) return;
  for (const { name, value } of [...to.attributes]) if (name !== "open" && name !== "class" && from.getAttribute(name) !== value) from.setAttribute(name, value);
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && ["aria-current", "href", "data-busy"].includes(name)) from.removeAttribute(name);
  const kept = ["here", "settled"].filter((name) => from.classList.contains(name));
  if (from.getAttribute("class") !== to.getAttribute("class")) {
    from.setAttribute("class", to.getAttribute("class") ?? "");
    from.classList.add(...kept);
  }
  if (from.matches("[data-rows]")) return;
  children(from, to);
}

function children(from, to) {
  const [old, now] = [[...from.childNodes], [...to.childNodes]];
  now.forEach((node, at) => {
    const twin = node.id ? from.querySelector(`:scope > #${CSS.escape(node.id)}`) : old[at];
    if (twin && twin.nodeType === node.nodeType && twin.nodeName === node.nodeName) morph(twin, node);
    else if (old[at]) old[at].replaceWith(node.cloneNode(true));
    else from.append(node.cloneNode(true));
  });
  old.slice(now.length).forEach((node) => node.remove());
}

// Rows that are here are brought up to date, those that are gone are dimmed, new ones are counted.
function rows(from, to) {
  const known = new Map([...from.children].filter((row) => row.id).map((row) => [row.id, row]));
  const order = [...to.children].filter((row) => row.id);
  const there = new Set(order.map((row) => row.id));
  for (const row of order) {
    const twin = known.get(row.id);
    if (twin) { twin.classList.remove("settled"); morph(twin, row); }
  }
  for (const [id, row] of known) if (!there.has(id)) row.classList.add("settled");
  const before = [...known.keys()].filter((id) => there.has(id));
  const after = order.map((row) => row.id).filter((id) => known.has(id));
  from.dataset.added = String(order.filter((row) => !known.has(row.id)).length);
  from.dataset.moved = String(after.filter((id, at) => id !== before[at]).length);
}

function bar() {
  const lists = [...document.querySelectorAll("main [data-rows]")];
  const sum = (name) => lists.reduce((all, list) => all + Number(list.dataset[name] ?? 0), 0);
  const back = document.querySelectorAll("main .part.back").length;
  const what = [[sum("added"), "new"], [sum("moved"), "moved"], [back, "can be shown again"]].filter(([n]) => n).map(([n, word]) => `${n} ${word}`).join(", ");
  const place = document.getElementById("fresh");
  place.hidden = !what;
  if (!what || place.dataset.what === what) return;
  place.dataset.what = what;
  const button = document.createElement("button");
  button.className = "plainly small";
  button.textContent = "show";
  button.addEventListener("click", unfold);
  place.replaceChildren(what + ": ", button);
  say(what);
}

function say(what) {
  if (Date.now() - lastSaid < SAID_MS) return;
  lastSaid = Date.now();
  document.getElementById("said").textContent = what;
}

const clock = (at) => new Date(at).toISOString().slice(11, 19);

// A part that cannot be read keeps what it showed, and says what went wrong and how old that is. One that never came says so by itself, until
// it could be shown.
function failed(name, twin) {
  const place = document.querySelector(`main [data-part="${CSS.escape(name)}"]`);
  if (place?.matches(".failed")) return place.classList.toggle("back", !twin);
  const known = place?.querySelector(".part-error");
  const why = twin?.querySelector(".part-why").textContent.replace("shown", "brought up to date");
  if (!twin || known?.dataset.why === why) return twin || known?.remove();
  const [note, again] = [known ?? document.createElement("span"), document.createElement("button")];
  note.dataset.since ??= clock(updated);
  Object.assign(again, { className: "plainly small", textContent: "Retry", onclick: refresh });
  note.className = "part-error";
  note.dataset.why = why;
  note.replaceChildren(`${why} As of ${note.dataset.since}. `, again);
  (place?.querySelector(".section-head") ?? place)?.append(note);
  say(why);
}

function unfold() {
  if (!document.getElementById("fresh")?.hidden) location.reload();
}

// The parts of this page: lists of rows, and the outermost of all else that has a name and is no part of a form.
function parts() {
  const all = [...document.querySelectorAll("main [id], header [id]")];
  const isList = (part) => part.matches("[data-rows]");
  const isPart = (part) => isList(part) || part.matches("[data-live]") || !(["main", "dot"].includes(part.id) || part.closest("form, [data-rows]") || part.parentElement.closest("main [id]:not(main, .part)"));
  const named = all.filter((part) => isPart(part) && !part.matches("h2, h3, input, button, select, label, .part")).slice(0, 80);
  // What has nothing in it that is brought up to date is not made for us.
  const made = [...document.querySelectorAll("main [data-part]")].filter((part) => part.matches(".failed, :empty") || named.some((one) => part.contains(one)));
  return [...named.map((part) => part.id), ...made.map((part) => "failed-" + part.dataset.part)];
}

function apply(html) {
  const given = new DOMParser().parseFromString(html, "text/html");
  for (const template of given.querySelectorAll("template[data-part]")) {
    const id = template.dataset.part;
    tags.set(id, template.dataset.tag);
    const [part, twin] = [document.getElementById(id), template.content.firstElementChild];
    if (id.startsWith("failed-")) failed(id.slice(7), twin);
    else if (!part || !twin) continue;
    else if (part.matches("[data-rows]")) rows(part, twin);
    else morph(part, twin);
  }
  bar();
}

async function refresh() {
  if (busy || signedOut) { pending = !signedOut; return; }
  if (occupied()) { pending = true; return show("live waiting", "waiting"); }
  busy = true;
  pending = false;
  try {
    const named = parts().map((id) => (tags.has(id) ? `${id}:${tags.get(id)}` : id));
    const answer = await fetch(location.href, { headers: { "X-Parts": named.join(",") }, redirect: "manual" });
    if (answer.type === "opaqueredirect") { signedOut = true; close(); return show("stale", "signed out: load the page again"); }
    if (!answer.ok && answer.status !== 304) throw new Error(String(answer.status));
    const html = answer.status === 304 ? "" : await answer.text();
    if (occupied()) { pending = true; return; }
    const loads = document.querySelector("[data-busy=load]");
    if (html) apply(html);
    // What can be done with what came of it is elsewhere on the page.
    if (loads && !loads.dataset.busy) return location.reload();
    updated = Date.parse(answer.headers.get("Date")) || Date.now();
    document.getElementById("updated").textContent = `Updated ${clock(updated)} UTC (${new Date(updated).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })} here)`;
    show("live", "live");
  } catch {
    pending = true;
  } finally {
    busy = false;
  }
}

function open() {
  if (!dot || document.hidden || stream || signedOut) return;
  stream = new EventSource("/events");
  const alive = () => { heard = Date.now(); if (!pending) show("live", "live"); };
  stream.addEventListener("alive", alive);
  stream.addEventListener("open", alive);
  // The first hint is about everything: what happened between the page and it, or while nobody listened.
  stream.addEventListener("change", () => { alive(); refresh(); });
}

function close() {
  stream?.close();
  stream = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
document.addEventListener("redrive:show", unfold);
setInterval(() => {
  if (document.hidden || !dot || signedOut) return;
  if (Date.now() - heard > silentMs) show("stale", "stale since " + clock(heard));
  if (stream && stream.readyState === EventSource.CLOSED) { close(); open(); }
  if ((pending || document.querySelector("[data-busy]")) && !busy) refresh();
}, 1000);
open();
