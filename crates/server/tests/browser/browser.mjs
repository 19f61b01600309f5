// What flows and pictures share: a browser in which nothing may leave the server, and nothing may go wrong unseen.
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

export const tools = process.env.TOOLS;
const { chromium } = await import(`${tools}/playwright-core/index.mjs`);
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

export const launch = (more = []) =>
  chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...more] });

export const check = (holds, what) => {
  if (!holds) throw new Error(what);
};

const PATIENCE_MS = 60000;

// Waits until something holds, however busy the machine is.
export const until = async (holds, what) => {
  for (const begun = Date.now(); Date.now() - begun < PATIENCE_MS; ) {
    if (await holds()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`it never came to this: ${what}`);
};

// Whoever started this has servers: `open LETTERS [SILENT_MS]` begins one and says where it is, `stop` and `start` it by that,
// `token ADDRESS NAME ROLE` makes a token of it, `refuse ADDRESS [VERB…]` has its store fail where it is named, `alarm ADDRESS` judges
// what fires, and gives it a sink.
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
export async function ask(line) {
  console.log(`>> ${line}`);
  return (await answers.next()).value;
}

// A worker that lives elsewhere: takes what there is of a pipeline and ends it as `verdict` says; says how much that was.
export async function work(api, pipeline, verdict) {
  const leased = await api("/leases", { pipelines: [pipeline], max: 50 });
  if (!leased.leases.length) return 0;
  const jobs = leased.leases.map(({ lease, ...job }) => ({ lease, ...verdict(job) }));
  await api("/leases/settle", { worker: leased.worker, jobs });
  return jobs.length;
}
export const failing = (message) => () => ({ verdict: "failed", failure: { message, reason: "schema_validation" } });

// What is in the token file of servers whose stores have no tokens.
const LOCAL = process.env.LOCAL;

// The cookie of somebody who signed in with what is in the token file; nothing if the store has a token.
export async function cookieOf(base) {
  if (!LOCAL) return undefined;
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const answer = await fetch(`${base}/login`, { method: "POST", headers, body: `token=${LOCAL}`, redirect: "manual" });
  return answer.headers.get("set-cookie")?.split(";")[0];
}

export async function letIn(context, base) {
  const cookie = await cookieOf(base);
  if (!cookie) return;
  const [name, value] = cookie.split("=");
  await context.addCookies([{ name, value, url: base, httpOnly: true, sameSite: "Lax" }]);
}

// The API of a server, for who sets something up or wants to know what became of it.
export const apiOf = (base, token = LOCAL) => async (path, body) => {
  const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const options = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  const answer = await fetch(`${base}/api/v1${path}`, options);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};

// The address of one page of every kind, by what is in the store.
export async function pagesOf(api) {
  const causes = (await api("/causes")).items;
  const { id: cause, pipeline } = causes.find((one) => one.title.includes("SelectorNotFound")) ?? causes[0];
  const [letter] = (await api(`/letters?cause=${cause}&limit=1`)).items;
  const pages = {
    overview: "/", causes: "/causes", cause: `/causes/${cause}`, letters: "/letters", letter: `/letters/${letter.id}`,
    "replay-new": `/replays/new?cause=${cause}`, replays: "/replays", alerts: "/alerts", pipelines: "/pipelines",
    pipeline: `/pipelines/${pipeline}`, activity: "/activity", settings: "/settings/tokens", search: "/search",
    mute: `/causes/${cause}/change?verb=mute`, discard: `/letters/discard?cause=${cause}`, merge: `/causes/${cause}/change?verb=merge`,
    pause: `/pipelines/${pipeline}/pause`, hold: `/breakers/turn?verb=hold&target=shop.example&pipeline=${pipeline}`,
  };
  const [replay] = (await api("/replays")).items;
  if (replay) pages.replay = `/replays/${replay.id}`;
  return { cause, letter, pages };
}

const axe = readFileSync(`${tools}/axe-core/axe.min.js`, "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

// Charts and edges of controls that can hardly be told from what is behind them: below 3 to 1. What is behind a chart, and the hour that is not over, are fainter.
const FAINT = () => {
  const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3).reduce((sum, part, at) => {
    const share = part / 255;
    return sum + [0.2126, 0.7152, 0.0722][at] * (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4);
  }, 0.05);
  const behind = (part) => {
    for (let up = part; up; up = up.parentElement) {
      const colour = getComputedStyle(up).backgroundColor;
      if ((parts(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (one, two) => { const [less, more] = [light(one), light(two)].sort((a, b) => a - b); return more / less; };
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((part) => part.checkVisibility({ opacityProperty: true }));
  const shapes = seen("svg rect:not(.track, .slot, .now)").map((part) => [part, getComputedStyle(part).fill, behind(part.closest("svg"))]);
  const edges = seen(":is(input:not([type=hidden]), select, textarea, button):enabled, a.button").map((part) => [part, getComputedStyle(part).borderTopColor, behind(part.parentElement)]);
  return [...shapes, ...edges].filter(([, colour, ground]) => (parts(colour)[3] ?? 1) === 1 && contrast(colour, ground) < 3).map(([part, colour, ground]) => `${colour} on ${ground}: ${part.outerHTML.slice(0, 120)}`);
};

// What is wrong with a page for who sees or handles it otherwise, and how much wider than its window it is. The policy of pages forbids strange
// scripts: the tool goes around it.
export async function faultsOf(page, { thoroughly = true } = {}) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const faults = wide > 0 ? [`${wide} px too wide`] : [];
  if (!thoroughly) return faults;
  await page.evaluate(axe);
  // What is rendered of strangers in frames is as they made it.
  const { violations } = await page.evaluate((runOnly) => axe.run(document, { runOnly, iframes: false }), RULES);
  faults.push(...(await page.evaluate(FAINT)).slice(0, 3));
  return [...faults, ...violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`)];
}

// Every look that a page has: two widths, light and dark.
export const LOOKS = [[1280, "light"], [390, "dark"], [1280, "dark"], [390, "light"]];

export const windowOf = ([width, colorScheme]) => ({ viewport: { width, height: width === 390 ? 844 : 900 }, colorScheme });

// Somebody who looks at pages of one server. Leaving fails if something went wrong meanwhile.
export async function visitOf(browser, base, options = {}, allowed = () => false) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const trouble = [];
  const note = (what) => { if (!allowed(what)) trouble.push(what); };
  context.on("request", (request) => {
    if (!request.url().startsWith(base)) note(`asked for ${request.url()}`);
  });
  context.on("page", (page) => {
    page.on("pageerror", (error) => note(`script: ${error.message}`));
    page.on("dialog", (dialog) => { note(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on("console", (message) => { if (message.type() === "error") note(`console: ${message.text()}`); });
  });
  await letIn(context, base);
  const page = await context.newPage();
  const leave = async () => {
    await context.close();
    check(!trouble.length, trouble.join("\n"));
  };
  return { page, context, leave };
}
