// Addresses, and who may be where.
import { ask, check, until } from "../browser.mjs";

const rowsOf = (page) => page.locator("#letters-rows tr").evaluateAll((rows) => rows.map((row) => row.id).join());

export const places = {
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
    await ask(`token ${base} ada admin`);
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
    const refused = await page.evaluate(async (cause) => {
      const form = document.querySelector("form[action='/logout'] [name=form]").value;
      const send = async (path, fields) => (await fetch(path, { method: "POST", body: new URLSearchParams({ form, key: "k", ...fields }) })).status;
      return [await send(`/causes/${cause}/change`, { verb: "resolve" }), await send("/replays/start", { cause }), await send("/letters/discard", { cause, why: "x" })];
    }, cause);
    check(String(refused) === "403,403,403", `refused: ${refused}`);
    await page.goto(`${base}/causes/${cause}`);
    check((await page.locator("h1").innerText()).includes("new"), "nothing was written");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/\/login/);
    check((await page.goto(`${base}/`)).url().includes("/login"), "they are out");
    await leave();
  },
};
