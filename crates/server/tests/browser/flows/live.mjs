// What changes while somebody looks, and what does not.
import { ask, check, until } from "../browser.mjs";

// Twenty changes a second, for two seconds.
async function storm(page, report, name) {
  for (let second = 0; second < 2; second += 1) {
    const begun = Date.now();
    await Promise.all(Array.from({ length: 20 }, (_, n) => report(`${name}-${second}-${n}`)));
    await page.waitForTimeout(Math.max(0, 1000 - (Date.now() - begun)));
  }
}
const isLive = (page) => page.locator("#dot.live").waitFor({ timeout: 60000 });
const rowsOf = (page) => page.locator("#letters-rows tr").evaluateAll((rows) => rows.map((row) => row.id));

export const live = {
  async "numbers change in place, rows wait to be asked for"({ base, report, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters?pipeline=shop`);
    const before = await rowsOf(page);
    await isLive(page);
    check((await page.locator("#dot").getAttribute("data-silent-ms")) === "30000", "half a minute of silence is stale");
    await report("live");
    await page.locator("#fresh", { hasText: "1 new" }).waitFor({ timeout: 60000 });
    check(String(await rowsOf(page)) === String(before), "rows came or moved by themselves");
    await page.keyboard.press(".");
    await until(async () => (await rowsOf(page).catch(() => [])).length > before.length, "what is new is shown");
    await page.goto(`${base}/`);
    await isLive(page);
    const dead = () => page.locator("#pipeline-shop [data-l=dead]").innerText();
    const was = await dead();
    const asked = [];
    page.on("response", async (answer) => { if (answer.request().headers()["x-parts"] && answer.status() === 200) asked.push(await answer.text()); });
    await report("live-2");
    await until(async () => (await dead()) !== was, "the number changes");
    const whole = await (await fetch(`${base}/`)).text();
    await until(() => asked.length, "parts were asked for");
    check(asked.every((part) => part.startsWith("<template") && part.length < whole.length), "only parts that changed are sent");
    await leave();
  },

  async "rows that are ticked stay so when numbers change and when new rows are shown"({ base, report, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters?pipeline=shop`);
    await isLive(page);
    const chosen = (await rowsOf(page)).slice(1, 3);
    for (const id of chosen) await page.locator(`#${id} input`).check();
    const ticked = () => page.locator("#letters-rows tr:has(input:checked)").evaluateAll((rows) => rows.map((row) => row.id));
    await report("ticked");
    await page.locator("#fresh", { hasText: "1 new" }).waitFor({ timeout: 60000 });
    check(String(await ticked()) === String(chosen), "an update in place leaves them");
    await page.getByRole("button", { name: "show" }).click();
    await page.locator("#fresh").waitFor({ state: "hidden" });
    await page.getByText("2 selected", { exact: true }).waitFor();
    check(String(await ticked()) === String(chosen), `and so does one that shows new rows: ${await ticked()}`);
    check(await page.getByRole("button", { name: "Replay 2 selected…" }).isVisible(), "buttons have their number");
    await page.goto(`${base}/letters?pipeline=shop`);
    check(!(await ticked()).length, "who comes again begins anew");
    await leave();
  },

  async "what somebody fills in is not disturbed"({ base, letters, report, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters/${letters[0].id}`);
    await isLive(page);
    const field = page.locator("#input");
    await field.fill('{"url": "https://shop.example/half"}');
    await field.evaluate((field) => field.setSelectionRange(3, 6));
    await storm(page, report, "half");
    await page.locator("#dot.waiting").waitFor({ timeout: 60000 });
    check((await field.inputValue()).includes("half"), "what was typed is gone");
    check(await field.evaluate((field) => field === document.activeElement && field.selectionStart === 3), "the cursor is elsewhere");
    await leave();
  },

  async "twenty changes a second move nothing under the pointer, and take no marked text"({ base, report, visit }) {
    const { page, leave } = await visit();
    const dead = page.locator("#pipeline-shop [data-l=dead]");
    let was = "";
    // On the overview numbers of the row change, in the list of letters rows wait to be asked for.
    for (const [path, which] of [["/", "#pipeline-shop"], ["/letters?pipeline=shop", "#letters-rows tr:nth-child(4)"]]) {
      await page.goto(base + path);
      await isLive(page);
      await page.evaluate(() => {
        window.shifts = [];
        // A number that grows in its own place moves nothing else, nor does what says how live the page is and how much is new.
        const isOther = (entry) => entry.sources.some(({ node }) => node?.nodeType === Node.ELEMENT_NODE && !node.matches("#fresh, .signs"));
        new PerformanceObserver((seen) => window.shifts.push(...seen.getEntries().filter(isOther).map((entry) => [entry.value, ...entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 80) ?? node?.data)]))).observe({ type: "layout-shift" });
      });
      const row = page.locator(which);
      await row.hover();
      const box = await row.boundingBox();
      await page.evaluate(([x, y]) => {
        window.under = () => document.elementFromPoint(x, y).closest("tr");
        window.was = window.under();
      }, [box.x + box.width / 2, box.y + box.height / 2]);
      was = await page.evaluate(() => window.was.id);
      const number = path === "/" ? await dead.innerText() : "";
      await storm(page, report, `storm-${was}`);
      if (number) await until(async () => (await dead.innerText()) !== number, "numbers change");
      else await page.locator("#fresh", { hasText: "new" }).waitFor({ timeout: 60000 });
      check(await page.evaluate(() => window.under() === window.was), `${path}: another element is under the pointer`);
      check(JSON.stringify(await row.boundingBox()) === JSON.stringify(box), `${path}: the row moved`);
      const shifts = await page.evaluate(() => window.shifts);
      check(!shifts.length, `${path}: the layout shifted: ${JSON.stringify(shifts)}`);
    }
    await page.evaluate((id) => getSelection().selectAllChildren(document.querySelector(`#${id} .l-msg`)), was);
    const marked = await page.evaluate(() => String(getSelection()));
    const numbers = await page.locator("#fresh").innerText();
    await storm(page, report, "marked");
    await page.locator("#dot.waiting").waitFor({ timeout: 60000 });
    check(marked && (await page.evaluate(() => String(getSelection()))) === marked, "what was marked is gone");
    check((await page.locator("#fresh").innerText()) === numbers, "it waited");
    await page.evaluate(() => getSelection().removeAllRanges());
    await until(async () => (await page.locator("#fresh").innerText()) !== numbers, "it goes on after that");
    await leave();
  },

  async "a part that cannot be read keeps what it showed, with its age, and the rest goes on"({ open }) {
    const { base, cause, report, visit } = await open(6);
    const { page, leave } = await visit();
    await page.goto(`${base}/causes/${cause}`);
    await isLive(page);
    const [dead, chart] = [page.locator("#figures dd").first(), page.locator("#when-chart svg.timeline")];
    await ask(`refuse ${base} counts`);
    await report("meanwhile");
    const error = page.locator("[data-part=when] .part-error");
    await error.waitFor({ timeout: 60000 });
    check(/cannot be brought up to date: the disk of the store is full.*As of \d\d:\d\d:\d\d/.test(await error.innerText()), await error.innerText());
    await until(async () => (await dead.innerText()) === "7", "the rest is up to date");
    check(await chart.isVisible(), "what was drawn is there still");
    check((await page.locator(".part-error").count()) === 1, "in that part only");
    await ask(`refuse ${base}`);
    await error.getByRole("button", { name: "Retry" }).click();
    await until(async () => !(await error.count()), "it is well again");
    await ask(`refuse ${base} cause_facets`);
    await page.reload();
    await page.getByText("This part cannot be shown: the disk of the store is full.").waitFor();
    await ask(`refuse ${base}`);
    await report("after");
    await page.locator("#fresh", { hasText: "1 can be shown again" }).waitFor({ timeout: 60000 });
    await page.getByRole("button", { name: "show" }).click();
    await page.locator("[data-part=different]:not(.failed)").waitFor();
    await leave();
  },

  async "an overview keeps what it showed of each part that cannot be read"({ open }) {
    const { base, report, visit } = await open(6);
    const { page, leave } = await visit();
    for (const [verb, name, kept] of [["busiest_causes", "lately", "#headline"], ["list_workers", "pl", "#pipelines tr"], ["list_alerts", "needs", "#todo li"]]) {
      await page.goto(`${base}/`);
      await isLive(page);
      const shown = await page.locator(kept).first().innerText();
      await ask(`refuse ${base} ${verb}`);
      await report(`without ${verb}`);
      const error = page.locator(`[data-part=${name}] .part-error`);
      await error.waitFor({ timeout: 60000 });
      check(/cannot be brought up to date.*As of \d\d:\d\d:\d\d/.test(await error.innerText()), await error.innerText());
      check((await page.locator(kept).first().innerText()).startsWith(shown.slice(0, 20)), `${name} shows what it did: ${shown}`);
      await ask(`refuse ${base}`);
      await error.getByRole("button", { name: "Retry" }).click();
      await until(async () => !(await error.count()), "it is well again");
    }
    await leave();
  },

  async "a server that is gone makes numbers stale, one that is back makes them live"({ open }) {
    const { base, report, visit } = await open(3, 1500);
    const { page, leave } = await visit({}, (what) => /Failed to load resource|ERR_/.test(what));
    await page.goto(`${base}/letters`);
    await isLive(page);
    await page.evaluate(() => { window.kept = true; });
    await ask(`stop ${base}`);
    await page.locator("#dot.stale").waitFor({ timeout: 60000 });
    check(/stale since \d\d:\d\d:\d\d/.test(await page.locator("#dot").getAttribute("title")), "it says since when");
    check(await page.evaluate(() => document.body.classList.contains("stale-numbers")), "stale numbers look so");
    await ask(`start ${base}`);
    await isLive(page);
    await report("after");
    await page.locator("#fresh", { hasText: "1 new" }).waitFor({ timeout: 60000 });
    check(await page.evaluate(() => window.kept), "the page was not loaded again");
    await leave();
  },
};
