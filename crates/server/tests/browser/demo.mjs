// The demo's story on its dashboard: `node demo.mjs ADDRESS FOLDER OLD NEW`. From the overview to letters that recovered, with the rule corrected in between.
import { readFileSync, writeFileSync } from "node:fs";
import { check, launch, until, visitOf } from "./browser.mjs";

const [base, folder, old, corrected] = process.argv.slice(2);
const file = `${folder}/redrive.toml`;
const browser = await launch();
const { page, leave } = await visitOf(browser, base);
const main = () => page.locator("main").innerText();

await page.goto(base);
check(/catalog: 66 of 121 tasks died in 10 min \(54\.5 %\)/.test(await main()), "the headline says what died");
await page.getByRole("link", { name: "Try a fix" }).click();
await page.waitForURL(/\/replays\/new/);
const was = readFileSync(file, "utf8");
const start = () => page.getByRole("button", { name: /^Replay \d/ });
await page.getByRole("button", { name: /^Try / }).click();
await page.getByText("0 of 60 would recover").waitFor({ timeout: 60000 });
// A draft is tried first: nothing is written, and nothing starts by rules that are not in force.
await page.locator("[id='draft.price']").fill(corrected);
await page.getByRole("button", { name: /^Try / }).click();
await page.getByText("57 of 60 would recover").waitFor({ timeout: 60000 });
check((await page.locator("pre.change").innerText()).includes(`select = "${corrected}"`), "the page shows what to change");
check(await start().isDisabled(), "a draft starts nothing");
check(readFileSync(file, "utf8") === was, "no configuration is written");
writeFileSync(file, was.replace(old, corrected));
await until(async () => {
  await page.getByRole("button", { name: /^Try / }).click();
  await page.waitForLoadState();
  return (await page.getByText("57 of 60 would recover").isVisible()) && (await start().isEnabled());
}, "the corrected rule recovers 57");
await page.locator("#name").fill("price selector corrected");
await page.getByText("All 60").click();
await page.getByRole("button", { name: /^Replay \d/ }).click();
await until(() => /\/replays\/[0-9a-f-]{36}/.test(page.url()), "it leads to the replay");
await page.locator("#verdict", { hasText: "57 of 60 recovered" }).waitFor({ timeout: 120000 });
await page.goto(`${base}/activity`);
check(/start\s+replay price selector corrected/.test(await main()), "what was done is written down");
await page.goto(base);
check(/57 recovered, 9 dead now/.test(await main()), "the headline says what is left");
await leave();
await browser.close();
process.exit(0);
