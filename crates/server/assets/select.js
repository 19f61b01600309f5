// Counts what is ticked, and puts the number on the buttons. What is ticked stays so when the page is loaded again, as it is to show new rows.
const key = `ticked ${location.pathname}${location.search}`;
const isAgain = performance.getEntriesByType("navigation")[0]?.type === "reload";
for (const bar of document.querySelectorAll("[data-selection]")) {
  const form = bar.closest("form");
  const count = bar.querySelector("[data-count]");
  const idle = count.textContent;
  const boxes = () => [...form.querySelectorAll("input[type=checkbox][name=id]")];
  const lost = new Set(JSON.parse((isAgain && sessionStorage.getItem(key)) || "[]"));
  for (const box of boxes()) if (lost.delete(box.value)) box.checked = true;
  const update = () => {
    const ticked = boxes().filter((box) => box.checked).length;
    count.textContent = (ticked ? `${ticked} selected` : idle) + (lost.size ? ` (${lost.size} no longer on this page)` : "");
    for (const button of bar.querySelectorAll("[data-label]")) {
      button.dataset.idle ??= button.textContent;
      button.textContent = ticked ? button.dataset.label.replace("#", ticked) : button.dataset.idle;
    }
    // Only causes of one pipeline can become one.
    const pipelines = new Set(boxes().filter((box) => box.checked).map((box) => box.dataset.pipeline));
    for (const button of bar.querySelectorAll("[data-joins]")) {
      button.disabled = pipelines.size > 1;
      button.title = pipelines.size > 1 ? "Causes are merged within a pipeline" : "";
    }
    for (const box of boxes()) box.closest("tr").setAttribute("aria-selected", String(box.checked));
  };
  form.addEventListener("change", update);
  addEventListener("pagehide", () => sessionStorage.setItem(key, JSON.stringify(boxes().filter((box) => box.checked).map((box) => box.value))));
  update();
}
