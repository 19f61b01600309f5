// What people do, and what the store says of it then.
import { check, failing, until, work } from "../browser.mjs";

const replaysOf = async (api, name) => (await api("/replays")).items.filter((one) => one.name === name);
const atReplay = (page) => until(() => /\/replays\/[0-9a-f-]{36}/.test(page.url()), "it leads to the replay");

export const acts = {
  async "from the causes to a started replay by keyboard alone"({ base, api, visit }) {
    const { page, leave } = await visit();
    await page.goto(`${base}/causes?tab=all`);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/causes\/[0-9a-f]+$/);
    const first = page.url();
    await page.keyboard.press("]");
    await page.waitForURL((url) => /\/causes\/[0-9a-f]+$/.test(url.pathname) && url.href !== first);
    await page.keyboard.press("[");
    await page.waitForURL(first);
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
    const [replay, ...more] = await replaysOf(api, "by hand");
    check(!more.length, "it was started twice");
    await api(`/replays/${replay.id}/cancel`, {});
    await leave();
  },

  async "without scripts everything can be read and done"({ base, api, cause, visit }) {
    const { page, leave } = await visit({ javaScriptEnabled: false });
    await page.goto(`${base}/causes/${cause}`);
    await page.getByRole("link", { name: /^Replay \d/ }).click();
    await page.locator("#name").fill("plain");
    // The first of two requests is given up by the browser: what counts is where it ends.
    await page.getByRole("button", { name: /^Replay \d/ }).dblclick();
    await atReplay(page);
    await page.waitForLoadState();
    check((await replaysOf(api, "plain")).length === 1, "a double click starts one");
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

  async "a form that is sent twice, or loaded again, is done once, about what was looked at"({ open }) {
    const { base, api, cause, report, visit } = await open(5);
    const { page, leave } = await visit();
    await page.goto(`${base}/replays/new?cause=${cause}`);
    await page.locator("#name").fill("twice");
    await report("joins");
    await page.getByRole("button", { name: /^Replay 5/ }).dblclick();
    await atReplay(page);
    await page.waitForLoadState();
    // The browser may still be on its way by the second of the two.
    await page.getByText("1 letter that died meanwhile was left out").waitFor();
    await page.reload();
    const [replay, ...more] = await replaysOf(api, "twice");
    check(!more.length && replay.progress.total === 5, `one replay of five: ${JSON.stringify(replay.progress)}`);
    await leave();
  },

  async "a replay pauses itself, goes on and is given up, and the store agrees"({ open }) {
    const { base, api, cause, visit } = await open(30);
    const { page, leave } = await visit();
    await page.goto(`${base}/replays/new?cause=${cause}`);
    await page.locator("#name").fill("failing");
    await page.getByRole("button", { name: /^Replay 30/ }).click();
    await atReplay(page);
    const replay = async () => (await replaysOf(api, "failing"))[0];
    await until(async () => { await work(api, "shop", failing("SelectorNotFound: .price-tag-main (field price)")); return (await replay()).state === "paused"; }, "it pauses itself");
    await page.locator("#head", { hasText: "paused" }).waitFor({ timeout: 60000 });
    check((await page.locator("#verdict").innerText()).includes("failed again, more than 25 %"), "it says why");
    check((await page.locator("#steps tr").count()) >= 3, "its steps are there");
    await page.reload();
    await page.getByRole("link", { name: "Resume…" }).click();
    check((await page.locator("main").innerText()).includes("are forgiven"), "it says what is forgiven");
    await page.getByRole("button", { name: "Resume" }).click();
    await until(async () => (await replay()).state === "running", "it goes on");
    await page.goto(`${base}/replays/${(await replay()).id}`);
    await page.getByRole("link", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: /^Cancel, and leave/ }).click();
    await until(async () => (await replay()).state === "cancelled", "it is cancelled");
    const status = (await api("/status")).pipelines.shop;
    check(status.dead === 30, `all are dead as before: ${JSON.stringify(status)}`);
    await leave();
  },

  async "targets and pipelines are held, probed, let go and paused, and the store agrees"({ open }) {
    const { base, api, visit } = await open(2);
    const { page, leave } = await visit();
    const held = async () => (await api("/breakers")).items;
    const tasks = [1, 2, 3].map((n) => ({ input: { url: `https://shop.example/waits/${n}` } }));
    await api("/jobs", { pipeline: "shop", jobs: tasks });
    const near = (time, hours) => Math.abs(Date.parse(time) - Date.now() - hours * 3600000) < 60000;
    await page.goto(`${base}/breakers/turn?verb=hold&target=shop.example&pipeline=shop`);
    await page.locator("#why").fill("they asked us to");
    await page.locator("#until").fill("2h");
    check((await page.locator("code[data-line]").textContent()) === "redrive breaker hold shop.example --pipeline shop --until 2h --why 'they asked us to'", "the command follows what is filled in");
    await page.getByRole("button", { name: "Hold shop.example" }).click();
    await page.getByText("held by local: they asked us to").waitFor();
    const [{ held_by: by, state, target, pipeline }, ...more] = await held();
    check(!more.length && target === "shop.example" && pipeline === "shop" && state === "open", "it is held");
    check(by.why === "they asked us to" && near(by.until, 2), `until then, and why: ${JSON.stringify(by)}`);
    const lease = async () => (await api("/leases", { pipelines: ["shop"], max: 50 }));
    check(!(await lease()).leases.length, "its tasks wait");
    await page.getByRole("button", { name: "Probe" }).click();
    await page.getByText("one task goes now, to see").waitFor();
    const probe = await lease();
    check(probe.leases.length === 1, `one task goes: ${probe.leases.length}`);
    check(!(await lease()).leases.length, "the others wait for it");
    await page.goto(`${base}/`);
    await page.getByRole("link", { name: "Close…" }).click();
    const [, waiting] = (await page.getByRole("button", { name: /^Let \d/ }).innerText()).match(/Let (\d+) task/);
    check(Number(waiting) === (await held())[0].held, `as many as wait: ${waiting}`);
    await page.getByRole("button", { name: /^Let \d/ }).click();
    await until(async () => (await held()).every((one) => one.state === "closed"), "it is closed");
    check((await lease()).leases.length === Number(waiting), "all that waited go");
    await page.goto(`${base}/pipelines/shop`);
    await page.getByRole("link", { name: "Pause…" }).click();
    await page.locator("#why").fill("it moves");
    await page.locator("#until").fill("3h");
    await page.getByRole("button", { name: "Pause shop" }).click();
    await page.locator(".banner", { hasText: "it moves" }).waitFor();
    const { paused } = await api("/pipelines/shop");
    check(paused.why === "it moves" && paused.by.name === "local" && near(paused.until, 3), `it is paused: ${JSON.stringify(paused)}`);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.waitForLoadState();
    check(!(await api("/pipelines/shop")).paused, "it goes on");
    const verbs = (await api("/activity")).items.map((one) => one.verb).slice(0, 5).join();
    check(verbs === "resume,pause,close,probe,hold", `the record has all of it: ${verbs}`);
    await leave();
  },

  async "one letter is edited and retried twice: one task, both differences"({ open }) {
    const { base, api, letters, visit } = await open(2);
    const { page, leave } = await visit();
    const { id } = letters[0];
    for (const path of ["first", "second"]) {
      await page.goto(`${base}/letters/${id}`);
      await page.locator("#input").fill("{");
      await page.getByRole("button", { name: "See what changes…" }).click();
      await page.getByText("this is no JSON").waitFor();
      await page.locator("#input").fill(JSON.stringify({ url: `https://shop.example/${path}` }));
      await page.getByRole("button", { name: "See what changes…" }).click();
      await page.locator("ins", { hasText: path }).waitFor();
      await page.getByRole("button", { name: "Retry with 1 change" }).click();
      await atReplay(page);
      await page.waitForLoadState();
      const isBack = async () => { await work(api, "shop", failing("SelectorNotFound: .price-tag-main (field price)")); return (await api("/letters?limit=10")).items.some((one) => one.id === id && one.input.url.endsWith(path)); };
      await until(isBack, "it is dead again");
    }
    await page.goto(`${base}/letters/${id}`);
    const text = await page.locator("section[aria-labelledby=edits]").innerText();
    check(/2 times/.test(text) && /first/.test(text) && /second/.test(text), `both differences: ${text}`);
    check((await api("/letters?limit=10")).items.length === 2, "it is one task");
    await leave();
  },

  async "a hundred and one letters are not discarded without their number"({ open }) {
    const { base, api, cause, visit } = await open(101);
    const { page, leave } = await visit({}, (what) => what.includes("400"));
    const dead = async () => (await api("/status")).pipelines.shop.dead;
    await page.goto(`${base}/letters/discard?cause=${cause}`);
    await page.locator("#why").fill("old");
    await page.getByRole("button", { name: "Discard 101 letters" }).click();
    check(page.url().includes("/letters/discard?cause") && (await dead()) === 101, "the browser asks for the number");
    await page.locator("#count").fill("100");
    await page.getByRole("button", { name: "Discard 101 letters" }).click();
    await page.getByText("type 101").waitFor();
    check((await dead()) === 101, "another number is refused");
    await page.goBack();
    await page.locator("#count").fill("101");
    await page.locator("#why").fill("old");
    await page.getByRole("button", { name: "Discard 101 letters" }).click();
    await page.getByText("101 letters were discarded").waitFor();
    check((await dead()) === 0, "they are discarded");
    await leave();
  },
};
