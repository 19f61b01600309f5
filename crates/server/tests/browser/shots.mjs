// Pictures of every page, and one sheet of them. `node shots.mjs ADDRESS FOLDER [PAGE…]`, with TOOLS as for flows.mjs: CONTRIBUTING says how.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { apiOf, LOOKS, launch, pagesOf, visitOf, windowOf } from "./browser.mjs";

const [base, folder, ...only] = process.argv.slice(2);
const SHEET = { page: 1012, wide: 244, tall: 200, quality: 42 };

const { pages } = await pagesOf(apiOf(base));
const chosen = Object.entries(pages).filter(([name]) => !only.length || only.includes(name));
const browser = await launch();
mkdirSync(folder, { recursive: true });
const taken = [];
for (const look of LOOKS) {
  const { page, leave } = await visitOf(browser, base, windowOf(look));
  for (const [name, path] of chosen) {
    await page.goto(base + path);
    const file = `${folder}/${name}-${look[0]}-${look[1]}.png`;
    await page.screenshot({ path: file, fullPage: true });
    taken.push({ name, look, file });
    if (name === "overview" && look === LOOKS[0]) await page.screenshot({ path: `${folder}/overview.jpg`, fullPage: true, type: "jpeg", quality: 80 });
  }
  await leave();
}

// The sheet: one row a page, cut to the same height.
const picture = ({ file, name, look }) =>
  `<figure><img src="data:image/png;base64,${readFileSync(file).toString("base64")}"><figcaption>${name}, ${look.join(" ")}</figcaption></figure>`;
const rows = chosen.map(([name]) => `<div>${taken.filter((shot) => shot.name === name).map(picture).join("")}</div>`).join("");
const style = `body { margin: 16px; width: ${SHEET.page}px; font: 11px sans-serif; background: #e7e9ec } div { display: flex; gap: 12px; margin-bottom: 12px }
  figure { margin: 0; width: ${SHEET.wide}px } img { width: 100%; height: ${SHEET.tall}px; object-fit: cover; object-position: top; border: 1px solid #aaa }`;
const context = await browser.newContext({ viewport: { width: SHEET.page + 32, height: 900 } });
const sheet = await context.newPage();
await sheet.setContent(`<style>${style}</style>${rows}`);
writeFileSync(`${folder}/sheet.jpg`, await sheet.screenshot({ fullPage: true, type: "jpeg", quality: SHEET.quality }));
await browser.close();
console.log(`${taken.length} pictures, sheet.jpg and overview.jpg in ${folder}`);
