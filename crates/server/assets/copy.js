// Copies commands, and sends forms that are a single choice.
for (const box of document.querySelectorAll("[data-copies]")) {
  box.querySelector("summary").addEventListener("click", async () => {
    const text = box.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      say("Copied: " + text);
    } catch {
      // Who may not write there selects the text that is shown now.
    }
  });
}

for (const choice of document.querySelectorAll("[data-sends]")) {
  choice.addEventListener("change", () => choice.form.submit());
}

for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (!Number.isNaN(at.valueOf())) time.title = time.dateTime + " UTC, here " + at.toLocaleString();
}

export function say(text) {
  const place = document.getElementById("said");
  if (place) place.textContent = text;
}
