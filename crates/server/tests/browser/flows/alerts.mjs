// Alerts: what people do about them on their page and on the overview, and what the store says then.
import { ask, check, until } from "../browser.mjs";

export const alerts = {
  async "an alert is acknowledged where it is seen, and that is taken back there"({ open }) {
    const { base, api, visit } = await open(6);
    await ask(`alarm ${base}`);
    const care = async () => (await api("/alerts")).alerts.find((one) => one.key === "rate/shop").care ?? {};
    const { page, leave } = await visit();
    await page.goto(`${base}/?pipeline=shop`);
    await page.getByRole("button", { name: "Acknowledge" }).first().click();
    await page.getByText("Acknowledged by local").waitFor();
    check(page.url().startsWith(`${base}/?pipeline=shop`), `it leads back: ${page.url()}`);
    check((await care()).acknowledged, "it is acknowledged");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Not acknowledged any more.").waitFor();
    check(page.url().startsWith(`${base}/?pipeline=shop`) && !(await care()).acknowledged, "it is taken back, and stays here");
    await leave();
  },

  async "an alert is acknowledged, assigned, snoozed and awake again, with and without scripts"({ open }) {
    for (const javaScriptEnabled of [true, false]) {
      const { base, api, visit } = await open(6);
      await ask(`alarm ${base}`);
      const care = async () => (await api("/alerts")).alerts.find((one) => one.key === "rate/shop").care ?? {};
      const { page, leave } = await visit({ javaScriptEnabled });
      await page.goto(`${base}/alerts`);
      const row = page.locator("#alerts tr", { hasText: "too many tasks die" });
      const said = page.locator(".said");
      check(/6 of 6 = 100 % > [\d.]+ % in \d+ min, min \d/.test(await row.innerText()), `it says why: ${await row.innerText()}`);
      await row.getByRole("button", { name: "Acknowledge" }).click();
      await said.getByText("Acknowledged, until it doubles").waitFor();
      check((await care()).acknowledged.by.name === "local", "the store knows who");
      await row.getByRole("button", { name: "Assign me" }).click();
      await said.getByText("Assigned to local.").waitFor();
      check((await care()).owner === "local", "it has an owner");
      await said.getByRole("button", { name: "Undo" }).click();
      await said.getByText("Assigned to nobody.").waitFor();
      check(!(await care()).owner, "it had none before");
      await row.getByRole("link", { name: "Snooze…" }).click();
      await page.locator("#until").fill("3h");
      await page.locator("#why").fill("the shop moves");
      await page.getByRole("button", { name: "Snooze" }).click();
      await said.getByText("Snoozed").waitFor();
      check(page.url().includes("state=snoozed") && (await row.innerText()).includes("the shop moves"), "it is among those that are snoozed");
      check((await care()).snoozed.why === "the shop moves", "the store knows why");
      await row.getByRole("button", { name: "Wake" }).click();
      await said.getByText("Awake").waitFor();
      check(page.url().includes("state=firing") && !(await care()).snoozed, "it is awake");
      await said.getByRole("button", { name: "Undo" }).click();
      await said.getByText("Snoozed").waitFor();
      check((await care()).snoozed.why === "the shop moves", "it is snoozed as it was");
      await leave();
    }
  },

  async "a test says of each sink what came of it"({ open }) {
    const { base, visit } = await open(1);
    await ask(`alarm ${base}`);
    const { page, leave } = await visit();
    await until(async () => { await page.goto(`${base}/alerts`); return page.getByRole("button", { name: "Send test" }).isVisible(); }, "the file is taken up");
    await page.getByRole("button", { name: "Send test" }).dblclick();
    await page.getByText("log: told").waitFor();
    await page.reload();
    await page.getByText("log: told").waitFor();
    await leave();
  },
};
