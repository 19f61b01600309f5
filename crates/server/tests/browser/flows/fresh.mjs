// What comes while somebody looks: lists that were empty, rows that are pushed off, buttons that do no more, numbers that grow old.
import { ask, check, until } from "../browser.mjs";

const isLive = (page) => page.locator("#dot.live").waitFor({ timeout: 60000 });
const fresh = (page, text) => page.locator("#fresh", { hasText: text }).waitFor({ timeout: 60000 });
const started = async (api, name) => (await api("/replays", { letters: { pipeline: "shop" }, name })).replay.id;

export const freshness = {
  async "what was empty says what came, and fills when it is asked to"({ open }) {
    const { base, api, cause, report, visit } = await open(2);
    const { page, leave } = await visit();
    const comes = async (path, list, come) => {
      await page.goto(base + path);
      await isLive(page);
      check((await page.locator(`main ${list}`).count()) === 0, `${path} is empty`);
      await come();
      await fresh(page, "1 new");
      check((await page.locator(`main ${list}`).count()) === 0, `${path}: no row comes by itself`);
      const said = await page.locator("main .empty").allInnerTexts();
      check(path === "/" || said.some((text) => text.startsWith("1 new since")), `${path} says nothing that is no longer true: ${said}`);
      await page.keyboard.press(".");
      await page.locator(`main ${list}`).first().waitFor();
    };
    await comes("/", "#held-rows tr", () => api("/breakers/hold", { pipeline: "shop", target: "shop.example" }));
    await comes("/alerts", "#alerts tr", async () => {
      for (const n of [10, 11, 12, 13]) await report(n);
      await ask(`alarm ${base}`);
    });
    await comes("/causes?tab=muted", "#causes tr", () => api(`/causes/${cause}/changes`, { verb: "mute", until: "24h" }));
    await comes("/replays", "#replays tr", () => started(api, "the first"));
    await leave();
  },

  async "time alone makes ages older, and what cannot be read makes numbers stale"({ open }) {
    const { base, api, cause, visit } = await open(3, 1500);
    const { page, leave } = await visit({}, (what) => /503/.test(what));
    await page.goto(`${base}/causes/${cause}`);
    await isLive(page);
    await page.goto(`${base}/causes`);
    await page.evaluate(() => {
      const dot = document.getElementById("dot");
      new MutationObserver(() => { window.wasStale ||= dot.matches(".stale"); }).observe(dot, { attributes: true });
    });
    const age = () => page.locator("#causes .c-when .fact").first().innerText();
    const was = await age();
    await until(async () => (await age()) !== was, "nothing happens but time");
    check(!(await page.evaluate(() => window.wasStale)), "numbers that come are not stale, however quiet it is");
    await page.goto(`${base}/causes/${cause}`);
    await isLive(page);
    await ask(`refuse ${base} get_cause`);
    await page.locator("#dot.stale").waitFor({ timeout: 60000 });
    check(/stale since \d\d:\d\d:\d\d/.test(await page.locator("body").getAttribute("data-stale")), "it is said over the page too");
    await until(async () => /stale since/.test(await page.locator("#said").textContent()), "and aloud");
    await ask(`refuse ${base}`);
    await isLive(page);
    check((await page.locator("body").getAttribute("data-stale")) === "", "and no longer");
    check((await api(`/causes/${cause}`)).id === cause, "the store is well");
    await leave();
  },

  async "new rows push others off a full list, and one entry of the record is one"({ open }) {
    const { base, api, cause, report, visit } = await open(52);
    const { page, leave } = await visit();
    await page.goto(`${base}/letters`);
    await isLive(page);
    await report("pushes");
    await fresh(page, "1 new");
    check((await page.locator("main .settled").count()) === 0, "what is on the next page now is not gone");
    for (const verb of ["resolve", "reopen"]) await api(`/causes/${cause}/changes`, { verb });
    await page.goto(`${base}/activity`);
    await isLive(page);
    await api(`/causes/${cause}/changes`, { verb: "resolve" });
    await fresh(page, "1 new");
    check((await page.locator("main .settled").count()) === 0, "the others keep their names");
    await page.goto(`${base}/letters`);
    await isLive(page);
    const [gone] = (await api("/letters?limit=1")).items;
    await api("/letters/discard", { letters: { ids: [gone.id] }, why: "gone" });
    await page.locator(`[id="letter-${gone.id}"].settled`).waitFor({ timeout: 60000 });
    await fresh(page, "1 gone");
    await leave();
  },

  async "what somebody is at stays while others act: the focus, what is open, the buttons"({ open }) {
    const { base, api, visit } = await open(6);
    const { page, leave } = await visit();
    const replay = await started(api, "watched");
    await page.goto(`${base}/replays/${replay}`);
    await isLive(page);
    const [pause, box] = [page.getByRole("button", { name: "Pause", exact: true }), page.locator("#actions [data-copies]")];
    await box.locator("summary").click();
    await pause.focus();
    const place = JSON.stringify(await pause.boundingBox());
    await api(`/replays/${replay}/cancel`, {});
    await page.locator("#head h1", { hasText: "cancelled" }).waitFor({ timeout: 60000 });
    await fresh(page, "other actions");
    check(await pause.evaluate((button) => button === document.activeElement), "the focus is where it was");
    check(await box.evaluate((box) => box.open), "what was opened is open");
    check(JSON.stringify(await pause.boundingBox()) === place, "no button moved");
    check(await pause.evaluate((button) => button.matches(".settled")), "what can be done no more is dimmed");
    await leave();
  },

  async "a letter that somebody else settles says so where it stands"({ open }) {
    const { base, api, letters, visit } = await open(2);
    const { page, leave } = await visit();
    await page.goto(`${base}/letters/${letters[0].id}`);
    await isLive(page);
    await api("/letters/discard", { letters: { ids: [letters[0].id] }, why: "no longer sold" });
    await page.locator("#where h1", { hasText: "is not dead" }).waitFor({ timeout: 60000 });
    check(await page.getByRole("link", { name: "Retry now…" }).evaluate((button) => button.matches(".settled")), "it cannot be sent again");
    await fresh(page, "other actions");
    await leave();
  },

  async "keys are about the row that somebody is at, or about nothing"({ open }) {
    const { base, api, report, visit } = await open(20);
    await report("other", "ValueError: another cause");
    await ask(`alarm ${base}`);
    const { page, leave } = await visit();
    await page.goto(`${base}/causes`);
    await page.keyboard.press("a");
    await until(async () => /Tick a row/.test(await page.locator("#said").textContent()), "it says what is missing");
    check(page.url() === `${base}/causes`, "nothing is sent");
    await page.goto(`${base}/`);
    const at = async (word) => until(async () => { await page.keyboard.press("j"); return (await page.locator("main .here").innerText()).includes(word); }, `j leads to ${word}`);
    await at("too many tasks die");
    await page.keyboard.press("t");
    await at("ValueError");
    check(page.url() === `${base}/`, "an alert has no fix to be tried");
    const cause = await page.locator("main .here").getAttribute("data-href");
    await page.keyboard.press("a");
    await page.waitForURL(/said=assign/);
    check((await api(cause)).owner, "it is assigned");
    await page.goto(`${base}/alerts`);
    await page.keyboard.press("j");
    await page.keyboard.press("c");
    await until(() => page.evaluate(() => document.activeElement.matches("#alerts .here [data-copy]")), "c leads to the commands of the row");
    await page.keyboard.press("m");
    await page.waitForURL(/verb=snooze/);
    await leave();
  },
};
