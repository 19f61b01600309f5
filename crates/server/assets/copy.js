// Copies commands, has them follow what is filled in, and sends forms that are a single choice.
const quoted = (word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'");

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied: " + text);
  } catch {
    // Who may not write there selects the text that is shown now.
  }
}

for (const box of document.querySelectorAll("[data-copies]")) {
  const lines = [...box.querySelectorAll("code")];
  if (lines.length === 1) box.querySelector("summary").addEventListener("click", () => copy(lines[0].textContent));
  else for (const line of lines) line.addEventListener("click", () => copy(line.textContent));
}

// A field says by its flag how a command says what is in it: an empty flag is a word of its own, a bare one has no value.
function said(field) {
  if (["radio", "checkbox"].includes(field.type) && !field.checked) return "";
  if (field.type === "radio") return field.dataset.bare === undefined ? "" : " " + field.dataset.flag;
  const tight = ["--ramp", "--refail-max"].includes(field.dataset.flag);
  const value = tight ? field.value.replaceAll(" ", "") : field.value.trim();
  if (!value) return "";
  return (field.dataset.flag && " " + field.dataset.flag) + " " + quoted(value);
}

for (const line of document.querySelectorAll("code[data-line]")) {
  const form = line.closest("form") ?? line.closest("section, main").querySelector("form");
  const follow = () => { line.textContent = line.dataset.line + [...form.querySelectorAll("[data-flag]")].map(said).join(""); };
  form?.addEventListener("input", follow);
}

for (const choice of document.querySelectorAll("[data-sends]")) {
  choice.addEventListener("change", () => choice.form.submit());
}

document.addEventListener("pointerover", ({ target }) => {
  const time = target.closest?.("time[datetime]");
  if (time) time.title = `${time.dateTime} UTC, here ${new Date(time.dateTime).toLocaleString()}`;
});

export function say(text) {
  const place = document.getElementById("said");
  if (place) place.textContent = text;
}
