// A hostile page, in a real browser. `node hostile.mjs raw FILE` shows it as it is, `node hostile.mjs shown ADDRESS` as the dashboard shows
// it. Whoever listens where the page wants to go says what came of it.
import { readFileSync } from "node:fs";
import { check, launch, letIn, until } from "./browser.mjs";

const POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'";

// What of a document is neither text nor its look: elements and attributes that no saved page may have where it is shown.
const strange = () => {
  const elements = "html head meta title style body h1 p a b span div button table tbody tr td".split(" ");
  const attributes = "align class colspan dir id lang rowspan valign title".split(" ");
  const found = [];
  for (const element of document.querySelectorAll("*")) {
    if (!elements.includes(element.localName)) found.push(`<${element.localName}>`);
    const isCharset = ({ name }) => element.localName === "meta" && name === "charset";
    const others = [...element.attributes].filter((one) => !attributes.includes(one.name) && !isCharset(one));
    found.push(...others.map(({ name }) => `${name} of <${element.localName}>`));
  }
  const styles = document.querySelectorAll("style").length;
  return [...found, ...(styles > 1 ? [`${styles} styles`] : []), ...(window.hacked ? ["a script ran"] : [])];
};

// What a view in which pages are text only has of them.
const written = () => document.querySelectorAll("img, script:not([src^='/']), [onerror], [onload], [onfocus], base, object, embed").length;

const [how, what] = process.argv.slice(2);
const browser = await launch();
try {
  const context = await browser.newContext();
  if (how === "shown") await letIn(context, new URL(what).origin);
  const page = await context.newPage();
  if (how === "raw") {
    await page.setContent(readFileSync(what, "utf8"), { waitUntil: "commit" });
    await page.waitForTimeout(1500);
  } else {
    const frames = [];
    page.on("response", (answer) => { if (answer.url().includes("/rendered")) frames.push(answer); });
    page.on("dialog", (dialog) => { throw new Error(`a dialog: ${dialog.message()}`); });
    for (const view of ["fields", "diff", "headers"]) {
      await page.goto(`${what}?view=${view}`, { waitUntil: "load" });
      check((await page.evaluate(written)) === 0, `${view} has what pages wrote`);
    }
    const shown = `${what}?view=rendered`;
    await page.goto(shown, { waitUntil: "load" });
    await page.locator("iframe").first().scrollIntoViewIfNeeded();
    await until(() => frames.length >= 2, "both frames are loaded");
    for (const answer of frames) {
      check(answer.status() === 200, `a frame answered ${answer.status()}`);
      const policy = answer.headers()["content-security-policy"];
      check(policy === POLICY, `its policy is ${policy}`);
      check((await answer.text()).includes("Cork bread board"), "the page is not in its frame");
    }
    for (const frame of await page.locator("iframe").all()) {
      check((await frame.getAttribute("sandbox")) === "", "a frame may do something");
    }
    await page.waitForTimeout(1500);
    const inside = page.frames().filter((frame) => frame !== page.mainFrame());
    check(inside.length === 2, `${inside.length} frames`);
    for (const frame of inside) {
      check((await frame.evaluate(() => document.body.innerText)).includes("Cork bread board"), "a frame is empty");
      const found = await frame.evaluate(strange);
      check(!found.length, `a frame has ${found.join(", ")}`);
    }
    check((await page.evaluate(() => window.hacked)) === undefined, "a script ran");
    check(page.url() === shown, `the page went to ${page.url()}`);
    await page.setContent("<p onclick=x><svg></svg><style></style><style></style>");
    const seen = (await page.evaluate(strange)).join(", ");
    check(seen === "onclick of <p>, <svg>, 2 styles", `what is strange would be seen: ${seen}`);
  }
  console.log("ok");
} finally {
  await browser.close();
}
