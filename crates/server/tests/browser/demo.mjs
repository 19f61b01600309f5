// The demo's story on its dashboard, told by pointer, by keyboard alone and without scripts: `node demo.mjs RULE ADDRESS=FOLDER…`, each way on a server
// of its own. From the overview to letters that recovered: another rule than that of the file is tried as a draft, and then written into it.
import { readFileSync, writeFileSync } from "node:fs";
import { check, faultsOf, launch, LOOKS, until, visitOf, windowOf } from "./browser.mjs";

const [old, ...worlds] = process.argv.slice(2);
const CAUSE = "SelectorNotFound";

// Presses Tab until something has the focus, as somebody does who has no pointer.
async function reach(page, wanted) {
  await wanted.waitFor({ timeout: 60000 });
  for (let n = 0; n < 300; n += 1) {
    if (await wanted.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`nobody gets there by keyboard: ${wanted}`);
}

const pointer = {
  open: (page) => page.locator("#headline a", { hasText: CAUSE }).click(),
  press: (page, what) => what.click(),
  fill: (page, field, text) => field.fill(text),
  choose: (page, radio) => radio.check(),
};

const keyboard = {
  async open(page) {
    const isHere = async () => { await page.keyboard.press("j"); return (await page.locator("main .here").innerText()).includes(CAUSE); };
    await until(isHere, "j leads to the cause");
    await page.keyboard.press("Enter");
  },
  async press(page, what) { await reach(page, what); await page.keyboard.press("Enter"); },
  async fill(page, field, text) { await reach(page, field); await page.keyboard.press("Control+A"); await page.keyboard.type(text); },
  // Tab leads to the one that is chosen, arrows to the others.
  async choose(page, radio) {
    const name = await radio.getAttribute("name");
    await reach(page, page.locator(`input[name="${name}"]:checked`));
    await until(async () => { await page.keyboard.press("ArrowDown"); return radio.isChecked(); }, "arrows choose it");
  },
};

const ways = { "by pointer": pointer, "by keyboard alone": keyboard, "without scripts": { ...pointer, options: { javaScriptEnabled: false } } };

// Pages that have something on them only after such a story, wide and narrow.
async function look(base, paths) {
  const found = [];
  for (const size of LOOKS.slice(0, 2)) {
    const { page, leave } = await visitOf(browser, base, windowOf(size));
    for (const path of paths) {
      await page.goto(base + path);
      found.push(...(await faultsOf(page)).map((fault) => `${path} at ${size}: ${fault}`));
    }
    await leave();
  }
  check(!found.length, found.join("\n"));
}

async function tell(way, base, folder) {
  const file = `${folder}/redrive.toml`;
  const was = readFileSync(file, "utf8");
  const { page, leave } = await visitOf(browser, base, way.options);
  const main = () => page.locator("main").innerText();
  const start = page.getByRole("button", { name: /^Replay \d/ });
  const attempt = () => way.press(page, page.getByRole("button", { name: /^Try / }));
  // Where no script brings a page up to date, it is loaded again.
  const says = (what) => until(async () => {
    if (await what.first().isVisible().catch(() => false)) return true;
    if (way.options) await page.reload();
    return false;
  }, `it says ${what}`);

  await page.goto(base);
  check(/catalog: 66 of 121 tasks died in 10 min \(54\.5 %\)/.test(await main()), "the headline says what died");
  await way.open(page);
  await page.waitForURL(/\/causes\/[0-9a-f]+$/);
  const cause = new URL(page.url()).pathname;
  check((await page.locator("h1").innerText()).includes(CAUSE), "it is the cause");
  const candidate = page.locator("table.candidates tr", { hasText: "data::attr(value)" }).first();
  const corrected = await candidate.locator("code").innerText();
  await way.press(page, candidate.getByRole("link", { name: "Try this rule" }));
  await page.waitForURL(/\/replays\/new/);
  check((await page.locator("[id='draft.price']").inputValue()) === corrected, "what could be meant is filled in");
  check(await start.isDisabled(), "what is not in the file starts nothing");
  await attempt();
  // It runs beside the page, which is loaded anew when it is over.
  await says(page.getByRole("button", { name: "Try again" }));
  await says(page.getByText("57 of 60 would recover"));
  check((await page.locator("pre.change").innerText()).includes(`select = "${corrected}"`), "the page shows what to change");
  check(await start.isDisabled(), "a draft starts nothing");
  check(readFileSync(file, "utf8") === was, "no configuration is written");
  writeFileSync(file, was.replace(old, corrected));
  await until(async () => {
    await page.reload();
    return start.isEnabled();
  }, "the rule that was tried is in the file, and the worker runs it");
  check(await page.getByText("Only the 57 that passed the try").isVisible(), "what passed by the draft is offered without another try");
  await way.fill(page, page.locator("#name"), "price selector corrected");
  await way.choose(page, page.getByRole("radio", { name: /^All 60/ }));
  await way.press(page, start);
  await until(() => /\/replays\/[0-9a-f-]{36}/.test(page.url()), "it leads to the replay");
  const replay = new URL(page.url()).pathname;
  await says(page.locator("#verdict", { hasText: "57 of 60 recovered" }));
  await says(page.locator("#verdicts-fact", { hasText: "60 of 60 settled" }));
  check(readFileSync(file, "utf8") === was.replace(old, corrected), "no configuration is written by starting either");
  await page.goto(`${base}/activity`);
  check(/start\s+replay price selector corrected/.test(await main()), "what was done is written down");
  await page.goto(base);
  check(/57 recovered, 9 dead now/.test(await main()), "the headline says what is left");
  if (way === pointer) {
    const views = ["", "diff", "rendered", "headers"].map((view) => `${cause}?view=${view}`);
    await look(base, ["/", ...views, `/replays/new?cause=${cause.split("/").pop()}`, replay, "/activity", "/pipelines/catalog"]);
  }
  await leave();
}

const browser = await launch();
const told = Object.entries(ways).slice(0, worlds.length).map(async ([name, way], at) => {
  const [base, folder] = worlds[at].split("=");
  const begun = Date.now();
  await tell(way, base, folder).catch((error) => { throw new Error(`${name}: ${error.stack ?? error}`); });
  console.log(`ok   ${name} (${Date.now() - begun} ms)`);
});
const failed = (await Promise.allSettled(told)).filter((one) => one.status === "rejected");
for (const one of failed) console.log(`FAIL ${one.reason.message}`);
await browser.close();
process.exit(failed.length ? 1 : 0);
