// How pages look: nothing is cut off, nothing is unreadable, nothing that strangers wrote is more than text.
import { check, faultsOf, LOOKS, windowOf } from "../browser.mjs";

export const looks = {
  async "no page is wider than its window, and axe finds nothing"({ base, pages, visit }) {
    const found = [];
    for (const look of LOOKS) {
      const [width, colours] = look;
      const { page, leave } = await visit(windowOf(look));
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(base + path);
        // Each colour scheme once, each width once.
        const faults = await faultsOf(page, { thoroughly: (width === 1280) === (colours === "light") });
        found.push(...faults.map((fault) => `${name} at ${width}: ${fault}`));
      }
      await leave();
    }
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
