// How pages look: nothing is cut off, nothing is unreadable, nothing that strangers wrote is more than text.
import { ask, check, faultsOf, LOOKS, windowOf } from "../browser.mjs";

// Whether every look of every page is looked at thoroughly; else each width once, and each colour scheme once.
const EVERY_LOOK = "REDRIVE_TEST_SOAK" in process.env;

export const looks = {
  async "no page is wider than its window, and axe finds nothing"({ base, pages, visit }) {
    const found = [];
    for (const look of LOOKS) {
      const [width, colours] = look;
      const { page, leave } = await visit(windowOf(look));
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(base + path);
        const faults = await faultsOf(page, { thoroughly: EVERY_LOOK || (width === 1280) === (colours === "light") });
        found.push(...faults.map((fault) => `${name} at ${width}: ${fault}`));
      }
      await leave();
    }
    check(!found.length, found.join("\n"));
  },

  async "lists with rows, forms, questions and mistakes are as readable as the rest"({ open }) {
    const { base, api, cause, letters, visit } = await open(6);
    await ask(`alarm ${base}`);
    const { id } = (await api("/replays", { letters: { ids: [letters[0].id] }, name: "watched" })).replay;
    const paths = [
      "/login", "/causes/ffffffff", "/letters?since=never", "/alerts", "/replays", `/replays/${id}`, "/causes?tab=muted", "/search?q=nothing-is-like-that",
      ...["resume", "cancel", "rate"].map((verb) => `/replays/${id}/change?verb=${verb}`), "/alerts/change?verb=snooze&alert=rate/shop",
      ...["note", "split"].map((verb) => `/causes/${cause}/change?verb=${verb}`), "/breakers/turn?verb=close&target=shop.example&pipeline=shop",
    ];
    const { page, leave } = await visit(windowOf([390, "light"]), (what) => /status of 40\d/.test(what));
    const found = [];
    const look = async (name) => found.push(...(await faultsOf(page)).map((fault) => `${name}: ${fault}`));
    for (const path of paths) {
      await page.goto(base + path);
      await look(path);
    }
    await page.goto(`${base}/causes`);
    await page.locator("[name=id]").first().check();
    const bar = page.locator(".bulk .actions > :visible");
    check((await bar.count()) <= 3, `a phone has room for three, not ${await bar.count()}`);
    await look("/causes with one that is ticked");
    await page.locator(".bulk summary", { hasText: "More" }).click();
    await page.getByRole("button", { name: "Merge 1…" }).waitFor();
    await page.getByRole("button", { name: "Try or replay 1…" }).click();
    await page.waitForURL(/\/causes\/ask|\/replays\/new/);
    await look("what is asked before causes are replayed");
    await page.goto(`${base}/letters/${letters[1].id}`);
    await page.locator("#input").fill('{"url": "https://shop.example/other"}');
    await page.getByRole("button", { name: "See what changes…" }).click();
    await page.waitForURL(/\/edit/);
    await look("what an edit changes");
    await leave();
    check(!found.length, found.join("\n"));
  },

  async "on a phone nothing lies over what can be pressed"({ base, pages, visit }) {
    const found = [];
    const { page, leave } = await visit({ ...windowOf([390, "light"]), hasTouch: true });
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(base + path);
      const covered = await page.evaluate(() => [...document.querySelectorAll("main :is(a[href], button:enabled, summary, input, select, textarea):not(.vh)")].flatMap((part) => {
        if (!part.checkVisibility({ opacityProperty: true })) return [];
        part.scrollIntoView({ block: "center" });
        const box = part.getClientRects()[0];
        const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return part.contains(hit) || hit?.closest("label")?.control === part ? [] : [`${part.outerHTML.slice(0, 120)} is under ${hit?.outerHTML.slice(0, 80)}`];
      }));
      found.push(...covered.map((what) => `${name}: ${what}`));
    }
    await leave();
    check(!found.length, found.join("\n"));
  },

  async "what strangers wrote runs nowhere"({ base, api, visit }) {
    const { page, leave } = await visit();
    const odd = (await api("/letters?limit=1000")).items.find((one) => one.message.includes("script"));
    for (const path of ["/", "/causes?tab=all", "/letters", `/letters/${odd.id}`, `/causes/${odd.cause}`, "/search?q=%3Cscript%3E"]) {
      await page.goto(base + path);
      check(!(await page.evaluate(() => window.hacked)), `${path} ran it`);
      check((await page.locator("main script, main img, main iframe:not([sandbox])").count()) === 0, `${path} has a strange element`);
    }
    await leave();
  },

  async "at four times the size, and where motion is not wanted, a page can be read"({ base, visit }) {
    // 1280 px at 400 % are 320.
    const { page, leave } = await visit({ viewport: { width: 320, height: 256 }, reducedMotion: "reduce", forcedColors: "active" });
    for (const path of ["/", "/causes", "/letters"]) {
      await page.goto(base + path);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(wide <= 0, `${path} is ${wide} px too wide`);
    }
    await leave();
  },
};
