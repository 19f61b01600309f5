// The dashboard below a path, behind a proxy that takes the path off: `node below.mjs ADDRESS TOKEN`. Everything that a browser asks for
// is below the path, and is there.
import { check, launch, until } from "./browser.mjs";

const [base, token] = process.argv.slice(2);
const browser = await launch();
const page = await (await browser.newContext()).newPage();
const wrong = [];
page.on("response", (answer) => {
  if (!answer.url().startsWith(`${base}/`) || answer.status() >= 400) wrong.push(`${answer.status()} ${answer.url()}`);
});
await page.goto(`${base}/causes`);
await page.fill("#token", token);
await page.click("form.sign-in button");
check(page.url() === `${base}/causes`, `signing in leads to ${page.url()}`);
const links = () => page.$$eval("a[href]", (all) => all.map((one) => one.href).filter((one) => one.startsWith("http")));
for (const link of [...new Set(await links())]) {
  await page.goto(link);
  for (const next of await links()) check(next.startsWith(`${base}/`), `${page.url()} leads to ${next}`);
}
await page.goto(`${base}/`);
await until(async () => (await page.locator("#dot").getAttribute("aria-label")).startsWith("live"), "the page is live");
await page.goto(`${base}/pipelines/shop/pause`);
await Promise.all([page.waitForURL(`${base}/pipelines/shop*`), page.locator("main form button").first().click()]);
check((await page.textContent("main")).includes("paused by"), "a form is done");
await page.locator("form[action$='/logout'] button").first().evaluate((button) => button.form.submit());
await page.waitForURL(`${base}/login*`);
check(wrong.length === 0, wrong.join("\n"));
await browser.close();
process.exit(0);
