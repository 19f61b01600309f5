// A hostile page, in a real browser. `node hostile.mjs raw FILE` shows it as it is, `node hostile.mjs shown ADDRESS` as the dashboard shows
// it. Whoever listens where the page wants to go says what came of it.
import { readFileSync } from "node:fs";
import { check, launch } from "./browser.mjs";

const [how, what] = process.argv.slice(2);
const browser = await launch();
try {
  const page = await (await browser.newContext()).newPage();
  if (how === "raw") {
    await page.setContent(readFileSync(what, "utf8"), { waitUntil: "commit" });
    await page.waitForTimeout(1500);
  } else {
    const frames = [];
    page.on("response", (answer) => { if (answer.url().includes("/rendered")) frames.push(answer); });
    page.on("dialog", (dialog) => { throw new Error(`a dialog: ${dialog.message()}`); });
    await page.goto(what, { waitUntil: "load" });
    await page.locator("iframe").first().scrollIntoViewIfNeeded();
    for (let n = 0; n < 600 && !frames.length; n += 1) await page.waitForTimeout(100);
    check(frames.length > 0, "no frame was loaded");
    for (const answer of frames) {
      check(answer.status() === 200, `a frame answered ${answer.status()}`);
      const policy = answer.headers()["content-security-policy"];
      check(policy === "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'", `its policy is ${policy}`);
      check((await answer.text()).includes("Cork bread board"), "the page is not in its frame");
    }
    check((await page.locator("iframe").first().getAttribute("sandbox")) === "", "the frame may do something");
    await page.waitForTimeout(1500);
    check((await page.evaluate(() => window.hacked)) === undefined, "a script ran");
    check(page.url() === what, `the page went to ${page.url()}`);
  }
  console.log("ok");
} finally {
  await browser.close();
}
