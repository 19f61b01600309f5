// Trying letters before they are replayed, and looking at their pages on a phone.
import { check, until } from "../browser.mjs";

// A server whose letters have saved pages, and whoever tries them.
async function withPages(open, many) {
  const { base, api, visit } = await open(1);
  const letter = (n) => ({
    pipeline: "books", input: { url: `https://books.example/b/${n}` }, message: "SelectorNotFound: .price (field price)",
    payload: { text: `<h1>Book ${n}</h1>`, status: 200 },
  });
  await api("/letters", Array.from({ length: many }, (_, n) => letter(n)));
  const [cause] = (await api("/causes")).items.filter((one) => one.pipeline === "books");
  const lease = async (max) => {
    const [{ id }] = (await api("/tries")).items;
    return api("/leases", { pipelines: ["books"], op: id, max });
  };
  const settle = async (max, ends) => {
    const leased = await lease(max);
    const jobs = leased.leases.map(({ lease: one }, n) => ({ lease: one, ...ends(n) }));
    await api("/leases/settle", { worker: leased.worker, jobs });
  };
  return { base, api, visit, cause: cause.id, settle };
}

const done = () => ({ verdict: "done", result: { title: "Book", price: 5 } });
const failed = () => ({ verdict: "failed", failure: { message: "no price", reason: "schema_validation" } });

export const tries = {
  async "a try grows on its page, and what passed is started"({ open }) {
    const { base, api, visit, cause, settle } = await withPages(open, 4);
    const { page, leave } = await visit();
    await page.goto(`${base}/replays/new?cause=${cause}`);
    await page.getByRole("button", { name: /^Try 4/ }).click();
    const part = page.locator("#try-result");
    await part.getByText("4 wait for one").waitFor();
    check(await page.getByRole("button", { name: /^Replay \d/ }).isDisabled(), "nothing starts while a try is under way");
    await page.evaluate(() => { window.stays = true; });
    await settle(1, done);
    await part.getByText("1 of 1 would recover").waitFor({ timeout: 60000 });
    check(await page.evaluate(() => window.stays === true), "the number grew in place");
    const height = (await part.boundingBox()).height;
    await settle(2, (n) => (n ? failed() : done()));
    await part.getByText("2 of 3 would recover").waitFor({ timeout: 60000 });
    check((await part.boundingBox()).height >= height, "the part does not shrink");
    await settle(1, done);
    await page.getByText("Only the 3 that passed the try").waitFor({ timeout: 60000 });
    check(!(await page.evaluate(() => window.stays)), "the page was loaded anew for what can be started");
    const words = await part.innerText();
    check(/3 of 4 would recover/.test(words) && /no price/.test(words) && /Record of letter/.test(words), words);
    await page.getByRole("button", { name: /^Replay \d/ }).click();
    await until(() => /\/replays\/[0-9a-f-]{36}/.test(page.url()), "it leads to the replay");
    const [replay] = (await api("/replays")).items;
    check(replay.progress.total === 3, `${replay.progress.total} letters are replayed`);
    await leave();
  },

  async "a try is stopped, and looked at again, without scripts"({ open }) {
    const { base, visit, cause, settle } = await withPages(open, 3);
    const { page, leave } = await visit({ javaScriptEnabled: false });
    await page.goto(`${base}/replays/new?cause=${cause}`);
    await page.getByRole("button", { name: /^Try 3/ }).click();
    await settle(1, done);
    await page.getByRole("link", { name: "Look again" }).click();
    await page.getByText("1 of 1 would recover").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("It was stopped before all were tried").waitFor();
    check(await page.getByRole("button", { name: "Try again" }).isVisible(), "it can be tried again");
    check(await page.getByRole("button", { name: /^Replay \d/ }).isEnabled(), "and started");
    await leave();
  },

  async "the button says how many go as the form is filled in, without scripts"({ open }) {
    const { base, api, visit } = await withPages(open, 2);
    await api("/letters", [{ pipeline: "books", input: { n: 1 }, message: "it is gone", reason: "payload_expired" }]);
    const { page, leave } = await visit({ javaScriptEnabled: false });
    await page.goto(`${base}/replays/new?pipeline=books`);
    const says = async (words) => {
      const found = (await page.getByRole("button", { name: /^Replay/ }).innerText()).trim();
      check(found === words, `${found} instead of ${words}`);
    };
    await says("Replay 2 letters");
    await page.getByLabel(/^Also send 1 letter that failed permanently/).fill("they are back");
    await says("Replay 3 letters");
    await page.getByLabel(/^All from saved pages/).check();
    await says("Replay 2 letters");
    await page.getByLabel(/^What suits each/).check();
    await page.getByRole("button", { name: /^Replay/ }).click();
    const [replay] = (await api("/replays")).items;
    check(replay.progress.total === 3, `${replay.progress.total} letters are replayed`);
    await leave();
  },

  async "on a phone one of two pages is shown, and the other by a tap, without scripts"({ open }) {
    const { base, visit, cause } = await withPages(open, 1);
    const { page, leave } = await visit({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
    await page.goto(`${base}/causes/${cause}?view=headers`);
    const [broke, worked] = ["td.f-broke", "td.f-worked"].map((side) => page.locator(`.headers ${side}`).first());
    check((await broke.isVisible()) && !(await worked.isVisible()), "the page that broke comes first");
    const tab = page.getByText("Last that worked");
    check((await tab.boundingBox()).height >= 44, "a finger finds it");
    await tab.click();
    check(!(await broke.isVisible()) && (await worked.isVisible()), "the other is shown");
    check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing goes sideways");
    await page.setViewportSize({ width: 1280, height: 900 });
    check((await broke.isVisible()) && (await worked.isVisible()) && !(await tab.isVisible()), "both have room here");
    await leave();
  },
};
