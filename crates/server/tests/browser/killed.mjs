// A server that is killed while somebody looks, and comes back: `node killed.mjs ADDRESS PID REDRIVE`, in its folder.
import { spawn } from "node:child_process";
import { check, launch, until, visitOf } from "./browser.mjs";

const [base, pid, redrive] = process.argv.slice(2);
const browser = await launch();
// That it does not answer is written to the console.
const { page, leave } = await visitOf(browser, base, {}, (what) => /ERR_|Failed to (load|fetch)/.test(what));
await page.goto(base);
const says = (text) => until(async () => (await page.locator("#dot").getAttribute("aria-label")).startsWith(text), `the dot says ${text}`);
await says("live");
await page.evaluate(() => (window.isTheSame = true));
const killed = Date.now();
process.kill(Number(pid), "SIGKILL");
await says("stale since");
check(Date.now() - killed < 30000, `it took ${Date.now() - killed} ms to be seen`);
const again = spawn(redrive, ["serve", "--listen", new URL(base).host], { stdio: "ignore" });
const ended = new Promise((done) => again.once("exit", done));
try {
  await says("live");
  check(await page.evaluate(() => window.isTheSame), "without loading the page again");
  await leave();
} finally {
  again.kill("SIGINT");
  await ended;
}
await browser.close();
process.exit(0);
