// Counts what is ticked, and puts the number on the buttons.
for (const bar of document.querySelectorAll("[data-selection]")) {
  const form = bar.closest("form");
  const count = bar.querySelector("[data-count]");
  const idle = count.textContent;
  const update = () => {
    const ticked = form.querySelectorAll("input[type=checkbox][name=id]:checked").length;
    count.textContent = ticked ? `${ticked} selected` : idle;
    for (const button of bar.querySelectorAll("[data-label]")) {
      button.dataset.idle ??= button.textContent;
      button.textContent = ticked ? button.dataset.label.replace("#", ticked) : button.dataset.idle;
    }
    for (const box of form.querySelectorAll("input[type=checkbox][name=id]")) {
      box.closest("tr").setAttribute("aria-selected", String(box.checked));
    }
  };
  form.addEventListener("change", update);
  update();
}
