// Brings numbers up to date in place. Rows never enter, leave or move by themselves: a bar says what is new.
// What answers a form cannot be asked for again, so that it is not live.
const dot = document.querySelector("#dot[data-silent-ms]");
const silentMs = Number(dot?.dataset.silentMs);
// Ages, probes that are due and workers that fell silent change though nobody writes anything.
const againMs = silentMs / 2;
const ANSWER_MS = 30000;
const RETRY_MS = 3000;
const tags = new Map();
let stream = null;
let heard = Date.now();
let pending = false;
let busy = false;
let signedOut = false;
let updated = Date.now();
let asked = Date.now();
let brokenSince = 0;
let told = 0;

const say = (detail) => document.dispatchEvent(new CustomEvent("redrive:say", { detail }));

function show(state, text) {
  if (!dot) return;
  const stale = state === "stale";
  if (stale && dot.title !== text) say(`Numbers are ${text}`);
  dot.className = "dot " + state;
  dot.setAttribute("aria-label", text);
  dot.title = text;
  dot.lastElementChild.textContent = text;
  document.body.classList.toggle("stale-numbers", stale);
  document.body.dataset.stale = stale ? `Numbers are ${text}` : "";
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

// What somebody is at, has opened, or was drawn in a frame stays as it is.
const isHeld = (node) => node.nodeType === Node.ELEMENT_NODE && (node.contains(document.activeElement) || node.matches("details[open], iframe") || !!node.querySelector("details[open], iframe"));

function morph(from, to) {
  if (from.isEqualNode(to) || from === document.activeElement) return;
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE || from.matches("form, input, textarea, select, iframe, button, details[open]")) return;
  if (from.matches(".page-actions")) return acts(from, to);
  for (const { name, value } of [...to.attributes]) if (name !== "open" && name !== "class" && from.getAttribute(name) !== value) from.setAttribute(name, value);
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && ["aria-current", "href", "data-busy"].includes(name)) from.removeAttribute(name);
  const kept = ["here", "settled"].filter((name) => from.classList.contains(name));
  if (from.getAttribute("class") !== to.getAttribute("class")) {
    from.setAttribute("class", to.getAttribute("class") ?? "");
    from.classList.add(...kept);
  }
  if (!from.matches("[data-rows]")) children(from, to);
}

// Children are the same by id, else by place among those that have none.
function children(from, to) {
  const known = new Map([...from.children].filter((node) => node.id).map((node) => [node.id, node]));
  const plain = [...from.childNodes].filter((node) => !node.id);
  let last = null;
  for (const node of [...to.childNodes]) {
    let twin = node.id ? known.get(node.id) : plain.shift();
    known.delete(node.id);
    if (twin && twin.nodeName === node.nodeName) morph(twin, node);
    else if (!twin || !isHeld(twin)) {
      const made = node.cloneNode(true);
      if (twin) twin.replaceWith(made);
      else if (last) last.after(made);
      else from.prepend(made);
      twin = made;
    }
    last = twin;
  }
  for (const node of [...plain, ...known.values()]) {
    if (node.matches?.(".page-actions")) acts(node, null);
    else if (!isHeld(node)) node.remove();
  }
}

// Rows that are here are brought up to date, those that are gone are dimmed, new ones are counted. Those that new ones pushed off the end of a
// full list are not gone.
function rows(from, to) {
  const known = new Map([...from.children].filter((row) => row.id).map((row) => [row.id, row]));
  const order = [...to.children].filter((row) => row.id);
  const there = new Set(order.map((row) => row.id));
  for (const row of order) {
    const twin = known.get(row.id);
    if (twin) { twin.classList.remove("settled"); morph(twin, row); }
  }
  const ids = [...known.keys()];
  const before = ids.filter((id) => there.has(id));
  const added = order.length - before.length;
  const isFull = added > 0 && order.length >= Number(to.dataset.rows || Infinity);
  const end = isFull ? ids.lastIndexOf(before.at(-1)) : ids.length;
  const gone = ids.filter((id, at) => at < end && !there.has(id));
  for (const id of gone) known.get(id).classList.add("settled");
  const after = order.map((row) => row.id).filter((id) => known.has(id));
  const moved = after.filter((id, at) => id !== before[at]).length;
  Object.assign(from.dataset, { added, moved, gone: gone.length, more: isFull && !before.length ? "+" : "" });
}

// What was empty is counted when it no longer is; what it said is no longer true.
function filled(from, to) {
  const list = to.querySelector("[data-rows]");
  const [was, is] = [from.querySelector(".empty"), to.querySelector(".empty")];
  const added = list ? list.childElementCount : Number(!is && to.childElementCount > 0);
  Object.assign(from.dataset, { added, more: added >= Number(list?.dataset.rows || Infinity) ? "+" : "" });
  if (was && is) morph(was, is);
  else if (was && added) was.textContent = `${added}${from.dataset.more} new since this page was loaded.`;
}

// Buttons never move and never turn into others under a pointer: those that do no more are dimmed, and the bar says so.
function acts(from, to) {
  const found = (part) => [...(part?.querySelectorAll(":scope > :is(a, button), :scope > form > button") ?? [])];
  const called = (button) => button.textContent.replace(/[\d.,\s]+/g, " ");
  const fresh = new Map(found(to).map((button) => [called(button), button]));
  const own = found(from);
  for (const button of own) {
    const twin = fresh.get(called(button));
    button.classList.toggle("settled", !twin);
    if (twin && !button.matches(":focus, [data-label]") && button.textContent !== twin.textContent) button.textContent = twin.textContent;
  }
  from.dataset.other = own.some((button) => button.matches(".settled")) || new Set(own.map(called)).size !== fresh.size ? "1" : "";
}

function bar() {
  const all = [...document.querySelectorAll("main [data-added], main [data-gone], main [data-other]")];
  const sum = (name) => all.reduce((sum, part) => sum + Number(part.dataset[name] ?? 0), 0);
  const back = document.querySelectorAll("main .part.back").length;
  const more = all.some((part) => part.dataset.more) ? "+" : "";
  const counts = [[sum("added"), more + " new"], [sum("moved"), " moved"], [sum("gone"), " gone"], [back, " can be shown again"]];
  const what = [...counts.filter(([n]) => n).map((words) => words.join("")), ...(sum("other") ? ["other actions"] : [])].join(", ");
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
  const place = document.getElementById("fresh");
  if (place && !place.hidden) location.reload();
}

// The parts of this page: lists of rows, those that are empty, and the outermost of all else that has a name and is no part of a form.
const isEmpty = (part) => part.matches(".part:not(.failed)") && !part.querySelector("[data-rows]") && (part.matches(":empty") || !!part.querySelector(".empty"));
function parts() {
  const all = [...document.querySelectorAll("main [id], header [id]")];
  const isList = (part) => part.matches("[data-rows]");
  const isPart = (part) => isList(part) || part.matches("[data-live]") || !(["main", "dot"].includes(part.id) || part.closest("form, [data-rows]") || part.parentElement.closest("main [id]:not(main, .part)"));
  const named = all.filter((part) => isEmpty(part) || (isPart(part) && !part.matches("h2, h3, input, button, select, label, .part"))).slice(0, 80);
  // What has nothing in it that is brought up to date is not made for us.
  const made = [...document.querySelectorAll("main [data-part]")].filter((part) => part.matches(".failed") || named.some((one) => part.contains(one)));
  return [...named.map((part) => part.id), ...made.map((part) => "failed-" + part.dataset.part)];
}

function apply(html) {
  const given = new DOMParser().parseFromString(html, "text/html");
  for (const template of given.querySelectorAll("template[data-part]")) {
    const id = template.dataset.part;
    tags.set(id, template.dataset.tag);
    const [part, twin] = [document.getElementById(id), template.content.firstElementChild];
    if (id.startsWith("failed-")) failed(id.slice(7), twin);
    else if (!twin && part?.matches(".page-actions")) acts(part, twin);
    else if (!part || !twin) continue;
    else if (part.matches(".part")) filled(part, twin);
    else if (part.matches("[data-rows]")) rows(part, twin);
    else morph(part, twin);
  }
  bar();
}

function dated() {
  const place = document.getElementById("updated");
  const offset = -new Date().getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60].map((n) => String(n).padStart(2, "0"));
  if (place && dot) place.textContent = `Updated ${clock(updated)}. Times are UTC; here it is UTC${offset < 0 ? "−" : "+"}${hours}:${minutes}.`;
}

const isStale = () => !!brokenSince || Date.now() - heard > silentMs;

async function refresh() {
  if (busy || signedOut) { pending = !signedOut; return; }
  if (occupied()) {
    pending = true;
    if (!isStale()) show("live waiting", "waiting");
    return;
  }
  busy = true;
  pending = false;
  asked = Date.now();
  try {
    const named = parts().map((id) => (tags.has(id) ? `${id}:${tags.get(id)}` : id));
    const answer = await fetch(location.href, { headers: { "X-Parts": named.join(",") }, redirect: "manual", signal: AbortSignal.timeout(ANSWER_MS) });
    if (answer.type === "opaqueredirect") { signedOut = true; close(); return show("stale", "signed out: load the page again"); }
    if (!answer.ok && answer.status !== 304) throw new Error(String(answer.status));
    const html = answer.status === 304 ? "" : await answer.text();
    if (occupied()) { pending = true; return; }
    const loads = document.querySelector("[data-busy=load]");
    if (html) apply(html);
    // What can be done with what came of it is elsewhere on the page.
    if (loads && !loads.dataset.busy) return location.reload();
    if (loads && Date.now() > told + 10000) { told = Date.now(); say(loads.querySelector("b").textContent); }
    updated = Date.parse(answer.headers.get("Date")) || Date.now();
    heard = Date.now();
    brokenSince = 0;
    dated();
    show("live", "live");
  } catch {
    // The stream may live on: numbers that cannot be read are stale all the same.
    pending = true;
    brokenSince ||= updated;
    show("stale", "stale since " + clock(brokenSince));
  } finally {
    busy = false;
  }
}

function open() {
  if (!dot || document.hidden || stream || signedOut) return;
  stream = new EventSource(new URL("../events", import.meta.url));
  const alive = () => { heard = Date.now(); if (!pending && !brokenSince) show("live", "live"); };
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
  const now = Date.now();
  if (isStale()) show("stale", "stale since " + clock(brokenSince || heard));
  if (stream && stream.readyState === EventSource.CLOSED) { close(); open(); }
  const isDue = brokenSince ? now - asked > RETRY_MS : pending || now - asked > againMs || document.querySelector("[data-busy]");
  if (isDue && !busy) refresh();
}, 1000);
dated();
open();
