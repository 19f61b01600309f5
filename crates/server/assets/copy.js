// Copies commands, has them follow what is filled in, sends forms that are a single choice, and says aloud what happens.
const quoted = (word) => {
  if (/^[\w./:=@%+,-]+$/.test(word)) return word;
  if (!/[\p{C}\p{Zl}\p{Zp}\p{DI}]/u.test(word)) return "'" + word.replaceAll("'", "'\\''") + "'";
  return "$'" + word.replace(/[^\w ./:=@+,()*-]/gu, encodeURIComponent).replace(/['!]/g, escape).replaceAll("%", "\\x") + "'";
};

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
    const ariaLabel = `Copy ${line.parentElement.previousElementSibling?.textContent ?? ""}`;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "plainly small", textContent: "Copy", ariaLabel });
    button.dataset.copy = "";
    line.after(button);
  }
  if (target.dataset?.keyed) target.querySelector("[data-copy]")?.focus();
  if (target.dataset) delete target.dataset.keyed;
}, true);

// A field says by its flag how a command says what is in it: an empty flag is a word of its own, a bare one has no value.
function said({ checked, dataset: { bare, flag }, type, value }) {
  if (type === "radio") return checked && bare !== undefined ? " " + flag : "";
  if (type === "checkbox" && !checked) return "";
  const text = /ramp|refail/.test(flag) ? value.replaceAll(" ", "") : value.trim();
  const isDashed = text[0] === "-";
  return text && (flag ? " " + flag + (isDashed ? "=" : " ") : isDashed ? " -- " : " ") + quoted(text);
}

const last = (a, b) => /^ -- /.test(a) - /^ -- /.test(b);
document.addEventListener("input", ({ target }) => {
  for (const line of document.querySelectorAll("code[data-line]")) {
    const form = line.closest("form") ?? line.closest("section, main").querySelector("form");
    if (form && form === target.form) line.textContent = line.dataset.line + [...form.querySelectorAll("[data-flag]")].map(said).sort(last).join("") + (line.dataset.last ?? "");
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
  }, Math.max(0, lastSaid + SAID_MS - Date.now()));
}
document.addEventListener("redrive:say", ({ detail }) => say(detail));
