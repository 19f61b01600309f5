// What people do on the dashboard, in a real browser. `node flows.mjs ADDRESS [FLOW…]`; SHOTS=folder keeps pictures of all pages.
import { existsSync, mkdirSync, readFileSync } from "node:fs";

const base = process.argv[2];
const only = process.argv.slice(3);
const tools = process.env.TOOLS;
const shots = process.env.SHOTS;
const { chromium } = await import(`${tools}/playwright-core/index.mjs`);
const axe = readFileSync(`${tools}/axe-core/axe.min.js`, "utf8");
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

const api = async (path, body) => {
  const options = body ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) } : {};
  const answer = await fetch(`${base}/api/v1${path}`, options);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};
const report = (n, message = "SelectorNotFound: .price-tag-main (field price)") =>
  api("/letters", { pipeline: "shop", input: { url: `https://shop.example/new/${n}` }, message });
const check = (holds, what) => {
  if (!holds) throw new Error(what);
};
const until = async (holds, what) => {
  for (let n = 0; n < 1200; n += 1) {
    if (await holds()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`it never came to this: ${what}`);
};

const causes = (await api("/causes")).items;
const { id: cause, pipeline } = causes.find((one) => one.title.includes("SelectorNotFound"));
const letters = (await api(`/letters?cause=${cause}&limit=1000`)).items;
const pages = {
  overview: "/", causes: "/causes", cause: `/causes/${cause}`, letters: "/letters", letter: `/letters/${letters[0].id}`,
  "replay-new": `/replays/new?cause=${cause}`, replays: "/replays", alerts: "/alerts", pipelines: "/pipelines", pipeline: `/pipelines/${pipeline}`,
  activity: "/activity", settings: "/settings/tokens", search: "/search", mute: `/causes/${cause}/change?verb=mute`,
  discard: `/letters/discard?cause=${cause}`,
};

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });

// A context in which nothing may leave the server, and nothing may go wrong unseen.
async function visit(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const trouble = [];
  context.on("request", (request) => {
    if (!request.url().startsWith(base)) trouble.push(`asked for ${request.url()}`);
  });
  context.on("page", (page) => {
    page.on("pageerror", (error) => trouble.push(`script: ${error.message}`));
    page.on("dialog", (dialog) => { trouble.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on("console", (message) => { if (message.type() === "error") trouble.push(`console: ${message.text()}`); });
  });
  const page = await context.newPage();
  const leave = async () => {
    await context.close();
    check(!trouble.length, trouble.join("\n"));
  };
  return { page, leave };
}

const flows = {
  async "no page is wider than its window, and axe finds nothing"() {
    const found = [];
    for (const [width, colorScheme] of [[1280, "light"], [390, "dark"], [1280, "dark"], [390, "light"]]) {
      const { page, leave } = await visit({ viewport: { width, height: width === 390 ? 844 : 900 }, colorScheme });
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(base + path);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wide > 0) found.push(`${name} at ${width}: ${wide} px too wide`);
        if (shots) {
          mkdirSync(shots, { recursive: true });
          await page.screenshot({ path: `${shots}/${name}-${width}${colorScheme === "dark" ? "-dark" : ""}.png`, fullPage: true });
        }
        if ((width === 1280) === (colorScheme === "light")) {
          // The policy forbids strange scripts: the tool goes around it.
          await page.evaluate(axe);
          const result = await page.evaluate(() => axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
          for (const broken of result.violations) found.push(`${name} at ${width}: ${broken.id}: ${broken.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
        }
      }
      await leave();
    }
    check(!found.length, found.join("\n"));
  },

  async "numbers change in place, rows wait to be asked for"() {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters?pipeline=shop`);
    const before = await page.locator("#letters-rows tr").count();
    const first = await page.locator("#letters-rows tr").first().getAttribute("id");
    await page.locator("#dot.live").waitFor({ timeout: 60000 });
    await report("live");
    await page.locator("#fresh", { hasText: "1 new" }).waitFor({ timeout: 60000 });
    check((await page.locator("#letters-rows tr").count()) === before, "a row came by itself");
    check((await page.locator("#letters-rows tr").first().getAttribute("id")) === first, "rows moved by themselves");
    await page.keyboard.press(".");
    await page.waitForFunction((n) => document.querySelectorAll("#letters-rows tr").length > n, before, { timeout: 60000 });
    await page.goto(`${base}/`);
    await page.locator("#dot.live").waitFor({ timeout: 60000 });
    const dead = () => page.locator("#pipeline-shop [data-l=dead]").innerText();
    const was = await dead();
    await report("live-2");
    await page.waitForFunction((was) => document.querySelector("#pipeline-shop [data-l=dead]").innerText !== was, was, { timeout: 60000 });
    await leave();
  },

  async "what somebody fills in is not disturbed"() {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters/${letters[0].id}`);
    await page.locator("#dot.live").waitFor({ timeout: 60000 });
    const field = page.locator("#input");
    await field.fill('{"url": "https://shop.example/half"}');
    await report("live-3");
    await page.locator("#dot.waiting").waitFor({ timeout: 60000 });
    check((await field.inputValue()).includes("half"), "what was typed is gone");
    await leave();
  },

  async "from the overview to a started replay by keyboard alone"() {
    const { page, leave } = await visit();
    await page.goto(`${base}/causes?tab=all`);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/causes\/[0-9a-f]+$/);
    await page.keyboard.press("r");
    await page.waitForURL(/\/replays\/new/);
    await page.locator("#name").focus();
    await page.keyboard.type("by hand");
    await page.getByRole("button", { name: /^Replay \d/ }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/replays\/[0-9a-f-]{36}/);
    check((await page.locator("h1").innerText()).includes("by hand"), "it has another name");
    await page.goBack();
    await page.goForward();
    check((await api("/replays")).items.filter((one) => one.name === "by hand").length === 1, "it was started twice");
    const replay = (await api("/replays")).items[0];
    await api(`/replays/${replay.id}/cancel`, {});
    await leave();
  },

  async "without scripts everything can be read and done"() {
    const { page, leave } = await visit({ javaScriptEnabled: false });
    await page.goto(`${base}/causes/${cause}`);
    await page.getByRole("link", { name: /^Replay \d/ }).click();
    await page.locator("#name").fill("plain");
    await page.getByRole("button", { name: /^Replay \d/ }).dblclick();
    // The first of two requests is given up by the browser: what counts is where it ends.
    await until(() => /\/replays\/[0-9a-f-]{36}/.test(page.url()), "it leads to the replay");
    await page.waitForLoadState();
    check((await api("/replays")).items.filter((one) => one.name === "plain").length === 1, "a double click starts one");
    await page.getByRole("link", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: /^Cancel/ }).click();
    check((await page.locator("main").innerText()).includes("Cancelled"), "it is cancelled");
    await page.goto(`${base}/causes/${cause}`);
    await page.getByRole("button", { name: "Assign me" }).click();
    check((await page.locator("main").innerText()).includes("owner local"), "it is assigned");
    await page.getByRole("button", { name: "Undo" }).click();
    check((await page.locator("main").innerText()).includes("no owner"), "that was taken back");
    await leave();
  },

  async "what strangers wrote runs nowhere"() {
    const { page, leave } = await visit();
    const odd = (await api("/letters?limit=1000")).items.find((one) => one.message.includes("script"));
    for (const path of ["/", "/causes?tab=all", "/letters", `/letters/${odd.id}`, `/causes/${odd.cause}`, "/search?q=%3Cscript%3E"]) {
      await page.goto(base + path);
      check(!(await page.evaluate(() => window.hacked)), `${path} ran it`);
      check((await page.locator("main script, main img, main iframe").count()) === 0, `${path} has a strange element`);
    }
    await leave();
  },
};

let failed = 0;
for (const [name, flow] of Object.entries(flows)) {
  if (only.length && !only.some((word) => name.includes(word))) continue;
  const begun = Date.now();
  try {
    await flow();
    console.log(`ok   ${name} (${Date.now() - begun} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n${error.stack ?? error}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
