// Pictures of every page, one sheet of some, and the one of the README. `node shots.mjs ADDRESS FOLDER [PAGE…]`, with TOOLS as for flows.mjs:
// CONTRIBUTING says how. What an earlier call left in the folder stays, and is on the sheet too.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { apiOf, LOOKS, launch, pagesOf, visitOf, windowOf } from "./browser.mjs";

const [base, folder, ...only] = process.argv.slice(2);
const [WIDE, PHONE] = [[1280, 1000], [390, 844]];
// What the sheet shows, row by row: pages wide enough to be read, then phones, each as large as it is.
const SHEET = [
  ["overview-1280-light", "cause-1280-dark"], ["replay-new-1280-light", "replay-1280-dark"], ["causes-1280-dark", "alerts-1280-light"],
  ["overview-390-light", "cause-390-dark", "replay-new-390-light", "replay-390-dark"], ["causes-390-dark", "letters-390-light", "alerts-390-dark", "pipeline-390-light"],
];
const SHEET_PX = 1608;

const { cause, pages } = await pagesOf(apiOf(base));
Object.assign(pages, { diff: `/causes/${cause}?view=diff`, rendered: `/causes/${cause}?view=rendered`, headers: `/causes/${cause}?view=headers` });
const chosen = Object.entries(pages).filter(([name]) => !only.length || only.includes(name));
const browser = await launch();
const top = (shot) => `${folder}/top/${shot}.jpg`;
mkdirSync(`${folder}/top`, { recursive: true });
for (const look of LOOKS) {
  const { page, leave } = await visitOf(browser, base, windowOf(look));
  for (const [name, path] of chosen) {
    const shot = `${name}-${look[0]}-${look[1]}`;
    await page.setViewportSize(windowOf(look).viewport);
    await page.goto(base + path);
    await page.locator("#dot.live").waitFor().catch(() => {});
    await page.screenshot({ path: `${folder}/${shot}.png`, fullPage: true });
    const [width, height] = look[0] === 390 ? PHONE : WIDE;
    await page.setViewportSize({ width, height });
    await page.screenshot({ path: top(shot), type: "jpeg", quality: 90 });
    if (["overview", "cause"].includes(name) && look === LOOKS[0]) await page.screenshot({ path: `${folder}/${name}.jpg`, type: "jpeg", quality: 80 });
  }
  await leave();
}

const picture = (shot) => `<figure><img src="data:image/jpeg;base64,${readFileSync(top(shot)).toString("base64")}"><figcaption>${shot.replaceAll("-", " ")}</figcaption></figure>`;
const rows = SHEET.map((row) => row.filter((shot) => existsSync(top(shot)))).filter((row) => row.length);
const style = `body { margin: 16px; width: ${SHEET_PX}px; font: 13px sans-serif; background: #e7e9ec } div { display: flex; gap: 16px; margin-bottom: 16px }
  figure { margin: 0; flex: 1 1 0; min-width: 0 } img { display: block; width: 100%; border: 1px solid #aaa; box-sizing: border-box } figcaption { padding-top: 4px }`;
const context = await browser.newContext({ viewport: { width: SHEET_PX + 32, height: 900 }, deviceScaleFactor: 1 });
const sheet = await context.newPage();
await sheet.setContent(`<style>${style}</style>${rows.map((row) => `<div>${row.map(picture).join("")}</div>`).join("")}`);
writeFileSync(`${folder}/sheet.jpg`, await sheet.screenshot({ fullPage: true, type: "jpeg", quality: 45 }));
await browser.close();
console.log(`${chosen.length * LOOKS.length} pictures, sheet.jpg, overview.jpg and cause.jpg in ${folder}`);
