// Addresses, and who may be where.
import { createServer } from "node:http";
import { apiOf, ask, check, launch, until } from "../browser.mjs";

const rowsOf = (page) => page.locator("#letters-rows tr").evaluateAll((rows) => rows.map((row) => row.id).join());

export const places = {
  async "what is named in the search is opened, by pointer, keys and without scripts"({ base, cause, letters, visit }) {
    const [letter, url] = [letters[0], letters[0].input.url];
    const places = { [url]: `/letters/${letter.id}`, [`#${letter.number}`]: `/letters/${letter.id}`, [letter.id.slice(-8)]: `/letters/${letter.id}`, [cause]: `/causes/${cause}` };
    for (const javaScriptEnabled of [true, false]) {
      const { page, leave } = await visit({ javaScriptEnabled });
      for (const [words, path] of Object.entries(places)) {
        await page.goto(`${base}/`);
        if (javaScriptEnabled) await page.keyboard.press("/");
        else await page.locator("#q").focus();
        await page.keyboard.type(words);
        await page.keyboard.press("Enter");
        await page.waitForURL(base + path);
      }
      await page.goto(`${base}/`);
      await page.locator("#q").fill("SelectorNotFound");
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/letters\?.*text=SelectorNotFound/);
      check(await page.locator("#letters-rows tr").count(), "letters with that text");
      await leave();
    }
  },

  async "colours and shortcuts are as this browser wants them"({ base, visit }) {
    const { page, leave } = await visit({ colorScheme: "light" });
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.goto(`${base}/settings/tokens`);
    const light = await ground();
    await page.locator("#theme").selectOption("dark");
    const dark = await ground();
    check(dark !== light, "it changes at once");
    await page.goto(`${base}/causes`);
    check((await ground()) === dark, "and stays on other pages");
    await page.keyboard.press("?");
    await page.locator(".help-box", { hasText: "next, previous row" }).waitFor();
    await page.keyboard.press("Escape");
    await until(async () => !(await page.locator(".help-box").count()), "Escape closes the list of keys");
    await page.goto(`${base}/settings/tokens`);
    await page.locator("#theme").selectOption("");
    check((await ground()) === light, "as the system has them");
    await page.getByRole("button", { name: "turn shortcuts off" }).click();
    await page.goto(`${base}/causes`);
    for (const key of ["j", "?", "g", "o"]) await page.keyboard.press(key);
    check(!(await page.locator(".here, .help-box").count()) && page.url() === `${base}/causes`, "no key does anything");
    await leave();
  },

  async "keys do to the row that somebody is at what its buttons do, and help gives the focus back"({ open }) {
    const { base, api, visit } = await open(2);
    const { page, leave } = await visit();
    await page.goto(`${base}/causes`);
    await page.keyboard.press("j");
    const at = () => page.evaluate(() => document.activeElement.getAttribute("href"));
    const row = await at();
    check(row.startsWith("/causes/"), "j moves to a row");
    await page.keyboard.press("?");
    await page.locator("dialog.help-box[open]").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Escape");
    await page.locator("dialog.help-box").waitFor({ state: "detached" });
    check((await at()) === row, "and it is there again when help was closed");
    await page.keyboard.press("a");
    await page.waitForURL(/said=assign/);
    check((await api(row)).owner, "a assigns the cause that somebody is at");
    await page.goto(`${base}/causes`);
    await page.keyboard.press("j");
    await page.keyboard.press("t");
    await page.waitForURL(/\/causes\/ask|\/replays\/new/);
    await leave();
  },

  async "hours are drawn, and stand in a table beneath"({ base, cause, letters, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/causes/${cause}`);
    const chart = page.locator("#when-chart svg.timeline");
    check((await chart.locator("title").count()) >= 1 && (await chart.getAttribute("role")) === "img", "the chart has a name");
    await page.getByText("As a table").click();
    const died = await page.locator(".as-table tbody tr td:nth-child(2)").allInnerTexts();
    const sum = died.reduce((all, text) => all + Number(text.replaceAll(",", "")), 0);
    check(sum >= letters.length, `the table has all that died: ${died}`);
    await leave();
  },

  async "back, forward and a shared address show the same rows"({ base, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/letters`);
    await page.locator("details.filter-form summary").click();
    await page.locator("#filter-text").fill("products/1");
    await page.locator("details.filter-form").getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/text=products/);
    const [address, rows] = [page.url(), await rowsOf(page)];
    check(rows, "some rows");
    await page.locator("#letters-rows a").first().click();
    await page.waitForURL(/\/letters\/[0-9a-f-]{36}/);
    await page.goBack();
    check((await rowsOf(page)) === rows, "the same after going back");
    await page.goForward();
    await page.goBack();
    const other = await visit();
    await other.page.goto(address);
    check((await rowsOf(other.page)) === rows, "the same for somebody else");
    await other.page.getByRole("link", { name: "Drop the filter text" }).click();
    check((await rowsOf(other.page)).length > rows.length, "a filter can be dropped");
    await other.leave();
    await leave();
  },

  async "who may only look is led back after signing in, sees what they may not do, and does nothing"({ open }) {
    const { base, cause, visit } = await open(2);
    const admin = apiOf(base, await ask(`token ${base} ada admin`));
    const secret = await ask(`token ${base} eve viewer`);
    const { page, leave } = await visit({}, (what) => /40[13]|EventSource/.test(what));
    await until(async () => (await page.goto(`${base}/letters?text=products`)).url().includes("/login"), "everybody signs in");
    await page.locator("#token").fill("rdr_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Not signed in").waitFor();
    await page.locator("#token").fill(secret);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(/\/letters\?text=products$/);
    await page.goto(`${base}/causes/${cause}`);
    const resolve = page.getByRole("button", { name: "Resolve" });
    check(await resolve.isDisabled(), "it cannot be pressed");
    check((await resolve.getAttribute("title")) === "needs operator; you are viewer", "it says why");
    const all = async () => JSON.stringify(await Promise.all(["/replays", "/letters", "/activity", `/causes/${cause}`, "/breakers", "/pipelines", "/tokens"].map(async (path) => {
      const { items, state, owner } = await admin(path);
      return path === "/tokens" ? items.map((one) => one.name) : items ?? { state, owner };
    })));
    const before = await all();
    const refused = await page.evaluate(async (cause) => {
      const form = document.querySelector("form[action='/logout'] [name=form]").value;
      const send = async (path, fields) => (await fetch(path, { method: "POST", body: new URLSearchParams({ form, key: "k", ...fields }) })).status;
      return [await send(`/causes/${cause}/change`, { verb: "resolve" }), await send("/replays/start", { cause }), await send("/letters/discard", { cause, why: "x" }), await send("/breakers/turn", { verb: "hold", target: "shop.example", pipeline: "shop" }), await send("/pipelines/shop/pause", {}), await send("/settings/tokens/create", { name: "mallory", role: "admin" })];
    }, cause);
    check(refused.every((status) => status === 403), `refused: ${refused}`);
    check((await all()) === before, `nothing was written: ${before} and then ${await all()}`);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/\/login/);
    check((await page.goto(`${base}/`)).url().includes("/login"), "they are out");
    await leave();
  },

  async "a page of another site sends no form that is done, and no other name leads here"({ open }) {
    const { base, api, cause, visit } = await open(2);
    const { page, leave } = await visit({}, () => true);
    await page.goto(`${base}/causes/${cause}`);
    const form = await page.locator("form [name=form]").first().getAttribute("value");
    // It knows even what a form of this visitor carries, and their browser sends the cookie along.
    const action = `${base}/causes/${cause}/change`;
    const foreign = createServer((_, answer) => {
      answer.setHeader("content-type", "text/html");
      answer.end(`<form method=post action="${action}"><input name=form value="${form}"><input name=key value=k><input name=verb value=resolve><button>Win</button></form>`);
    });
    await new Promise((done) => foreign.listen(0, "127.0.0.1", done));
    await page.goto(`http://127.0.0.1:${foreign.address().port}/`);
    const [answer] = await Promise.all([page.waitForResponse((one) => one.request().method() === "POST"), page.getByRole("button", { name: "Win" }).click()]);
    check(answer.url() === action && answer.status() === 403, `refused: ${answer.status()}`);
    check((await api(`/causes/${cause}`)).state === "new", "nothing was done");
    foreign.close();
    await leave();
    const { port } = new URL(base);
    const browser = await launch(["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
    const stranger = await browser.newPage();
    const other = await stranger.goto(`http://evil.example:${port}/causes/${cause}`);
    check(other.status() === 403 && !(await stranger.content()).includes("SelectorNotFound"), `another name shows nothing: ${other.status()}`);
    await browser.close();
  },
};
