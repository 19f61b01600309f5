// Copies commands, has them follow what is filled in, sends forms that are a single choice, and says aloud what happens.
const quoted = (word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'");

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied: " + text);
  } catch {
    // Who may not write there selects the text that is shown now.
  }
}

// One command is copied by opening its box, several by a button each.
document.addEventListener("click", ({ target }) => {
  const box = target.closest?.("[data-copies] > summary")?.parentElement;
  const line = box?.querySelectorAll("code").length === 1 ? box.querySelector("code") : target.closest?.("[data-copy]")?.previousElementSibling;
  if (line) copy(line.textContent);
});
document.addEventListener("toggle", ({ target }) => {
  const lines = target.matches?.("[data-copies][open]") ? [...target.querySelectorAll("code")] : [];
  for (const line of lines.length > 1 ? lines : []) {
    if (line.nextElementSibling) continue;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "plainly small", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy ${line.parentElement.previousElementSibling?.textContent ?? ""}`);
    button.dataset.copy = "";
    line.after(button);
  }
  if (target.dataset?.keyed) target.querySelector("[data-copy]")?.focus();
  if (target.dataset) delete target.dataset.keyed;
}, true);

// A field says by its flag how a command says what is in it: an empty flag is a word of its own, a bare one has no value.
function said(field) {
  if (["radio", "checkbox"].includes(field.type) && !field.checked) return "";
  if (field.type === "radio") return field.dataset.bare === undefined ? "" : " " + field.dataset.flag;
  const tight = ["--ramp", "--refail-max"].includes(field.dataset.flag);
  const value = tight ? field.value.replaceAll(" ", "") : field.value.trim();
  if (!value) return "";
  return (field.dataset.flag && " " + field.dataset.flag) + " " + quoted(value);
}

document.addEventListener("input", ({ target }) => {
  for (const line of document.querySelectorAll("code[data-line]")) {
    const form = line.closest("form") ?? line.closest("section, main").querySelector("form");
    if (form && form === target.form) line.textContent = line.dataset.line + [...form.querySelectorAll("[data-flag]")].map(said).join("");
  }
});

document.addEventListener("change", ({ target }) => { if (target.matches?.("[data-sends]")) target.form.submit(); });

document.addEventListener("pointerover", ({ target }) => {
  const time = target.closest?.("time[datetime]");
  if (time) time.title = `${time.dateTime} UTC, here ${new Date(time.dateTime).toLocaleString()}`;
});

// Every ten seconds at most; what comes meanwhile is said together.
const SAID_MS = 10000;
const unsaid = new Set();
let lastSaid = 0;
let timer = 0;
function say(text) {
  unsaid.add(text);
  clearTimeout(timer);
  timer = setTimeout(() => {
    lastSaid = Date.now();
    const place = document.getElementById("said");
    if (place) place.textContent = [...unsaid].join(". ");
    unsaid.clear();
  }, lastSaid + SAID_MS - Date.now());
}
document.addEventListener("redrive:say", ({ detail }) => say(detail));
