// What changes while somebody looks, and what does not.
import { ask, check, until } from "../browser.mjs";

const isLive = (page) => page.locator("#dot.live").waitFor({ timeout: 60000 });
const rowsOf = (page) => page.locator("#letters-rows tr").evaluateAll((rows) => rows.map((row) => row.id));

export const live = {
  async "numbers change in place, rows wait to be asked for"({ base, report, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters?pipeline=shop`);
    const before = await rowsOf(page);
    await isLive(page);
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

  async "what somebody fills in is not disturbed"({ base, letters, report, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters/${letters[0].id}`);
    await isLive(page);
    const field = page.locator("#input");
    await field.fill('{"url": "https://shop.example/half"}');
    await report("live-3");
    await page.locator("#dot.waiting").waitFor({ timeout: 60000 });
    check((await field.inputValue()).includes("half"), "what was typed is gone");
    await leave();
  },

  async "twenty changes a second move nothing under the pointer, and take no marked text"({ base, report, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters?pipeline=shop`);
    await isLive(page);
    await page.evaluate(() => {
      window.shifts = [];
      new PerformanceObserver((seen) => window.shifts.push(...seen.getEntries().map((entry) => [entry.value, ...entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 80) ?? node?.data)]))).observe({ type: "layout-shift" });
    });
    const row = page.locator("#letters-rows tr").nth(3);
    await row.hover();
    const box = await row.boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const under = () => page.evaluate(([x, y]) => document.elementFromPoint(x, y).closest("tr").id, [x, y]);
    const was = await under();
    const storm = async (name) => {
      for (let second = 0; second < 2; second += 1) {
        const begun = Date.now();
        await Promise.all(Array.from({ length: 20 }, (_, n) => report(`${name}-${second}-${n}`)));
        await page.waitForTimeout(Math.max(0, 1000 - (Date.now() - begun)));
      }
    };
    await storm("storm");
    await page.locator("#fresh", { hasText: "new" }).waitFor({ timeout: 60000 });
    check((await under()) === was, "another row is under the pointer");
    check(JSON.stringify(await row.boundingBox()) === JSON.stringify(box), "the row moved");
    const shifts = await page.evaluate(() => window.shifts);
    check(!shifts.length, `the layout shifted: ${JSON.stringify(shifts)}`);
    await page.evaluate((id) => getSelection().selectAllChildren(document.querySelector(`#${id} .l-msg`)), was);
    const marked = await page.evaluate(() => String(getSelection()));
    const numbers = await page.locator("#fresh").innerText();
    await storm("marked");
    await page.locator("#dot.waiting").waitFor({ timeout: 60000 });
    check(marked && (await page.evaluate(() => String(getSelection()))) === marked, "what was marked is gone");
    check((await page.locator("#fresh").innerText()) === numbers, "it waited");
    await page.evaluate(() => getSelection().removeAllRanges());
    await until(async () => (await page.locator("#fresh").innerText()) !== numbers, "it goes on after that");
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
