// Every action of a page beside the command that it offers: `node copied.mjs ADDRESS COPY REDRIVE FOLDER`, where FOLDER is that of the server.
import { readFileSync } from "node:fs";
import { check, until } from "./browser.mjs";
import { act, base, begin, by, copy, end, follow, listed, page, press, ran, runs, server, shell, signIn, visit } from "./copying.mjs";

const [{ id: cause }, { id: other }] = listed("redrive cause list --json");
const letters = listed("redrive dead list --json", base).sort((one, two) => one.number - two.number);
for (const path of ["/", "/causes?tab=all", "/letters", "/letters?reason=handler_error&text=boom", `/letters/${letters[0].id}`, "/pipelines", "/pipelines/shop", "/replays", "/alerts", "/activity", `/causes/${cause}`, "/settings/tokens"]) await visit(path);
await act(`/causes/${cause}`, { called: "Assign me", then: "Assign me" });
await act(`/causes/${cause}`, { called: "Give back", then: "Give back" });
await act(`/causes/${cause}/change?verb=mute`, { fill: { until: "2h", per_hour: "700" }, then: "Mute" });
await act(`/causes/${cause}`, { called: "Unmute", then: "Unmute" });
await act(`/causes/${cause}`, { called: "Mute", does: by("Mute…", "Mute") });
await act(`/causes/${cause}`, { called: "Unmute", then: "Unmute" });
await act(`/causes/${cause}/change?verb=note`, { fill: { text: "it's the layout" }, then: "Note" });
await act(`/causes/${cause}`, { called: "Resolve", then: "Resolve" });
await act(`/causes/${cause}`, { called: "Reopen", then: "Reopen" });
const tickCauses = async (ids) => {
  await visit("/causes?tab=all");
  for (const id of ids) await page.locator(`#cause-${id} input[type=checkbox]`).check();
};
await tickCauses([cause, other]);
await follow({ called: "Assign me", does: press("Assign me") });
await tickCauses([cause, other]);
await press("Mute 2…")();
await page.locator("#until").fill("3h");
await follow({ does: press("Mute 2 causes") });
await tickCauses([cause, other]);
await follow({ called: "Resolve", does: press("Resolve") });
for (const id of [cause, other]) await act(`/causes/${id}`, { called: "Reopen", then: "Reopen" });
await act(`/causes/${other}/change?verb=merge&into=${cause}`, { then: "Merge" });
await act(`/causes/${cause}/change?verb=split`, { fill: { text: "no such page" }, then: "Split" });
await visit("/activity?verb=split&object=cause");
const apart = listed("redrive cause list --json").map((one) => one.id);
await tickCauses(apart);
await page.getByRole("button", { name: /^Merge/ }).click();
await page.getByRole("heading", { name: "Merge 2 causes?" }).waitFor();
await follow({ does: press("Merge 2 causes") });
await act("/breakers/turn?verb=hold&target=shop.example&pipeline=shop", { fill: { until: "2h", why: "they asked" }, then: "Hold shop.example" });
await act("/", { called: "Hold shop.example", does: by("Hold…", "Hold shop.example") });
await act("/", { called: "Probe shop.example", then: "Probe" });
await act("/breakers/turn?verb=hold&target=shop.example&pipeline=shop", { then: "Hold shop.example" });
await act("/", { called: "Close shop.example", does: by("Close…", /^(Let|Close)/) });
await act("/pipelines/shop/pause", { fill: { until: "2h", why: "it moves" }, then: "Pause shop" });
await act("/pipelines/shop", { called: "Resume", then: "Resume" });
await act("/pipelines/shop", { called: "Pause", does: by("Pause…", "Pause shop") });
await act("/pipelines/shop", { called: "Resume", then: "Resume" });
await act("/alerts", { called: "Acknowledge", then: "Acknowledge" });
await act("/alerts", { called: "Assign me", then: "Assign me" });
await act("/alerts", { called: "Snooze", does: by("Snooze…", "Snooze") });
await act("/alerts?state=snoozed", { called: "Wake", then: "Wake" });
await act("/alerts/change?verb=snooze&alert=rate%2Fshop", { fill: { until: "3h", why: "it's known" }, then: "Snooze" });
await act("/alerts?state=snoozed", { called: "Wake", then: "Wake" });
// A test tells sinks and writes nothing: both of them were told.
const told = () => [server, copy].map((folder) => readFileSync(`${folder}/told.txt`, "utf8").match(/this is a test/gi)?.length ?? 0);
const before = told();
await act("/alerts", { called: "Send test", then: "Send test" });
check((await page.locator("main").innerText()).includes("command: told"), "it says that the sink was told");
check(told().every((count, at) => count === before[at] + 1), `each was told once: ${before} and then ${told()}`);
for (const state of ["firing", "snoozed", "ended"]) {
  await visit(`/alerts?state=${state}`);
  const shown = await page.locator("#alerts tr").count();
  const line = await page.locator("main details.cli > code").first().textContent();
  check(shell(line) === "" || listed(`${line} --json`).length === shown, `${line} lists what ${state} shows: ${shown}`);
}
begin();
// Replays of a whole cause; each is given up again, and its letters are dead as before.
const [whole] = listed("redrive cause list --json").map((one) => one.id);
const isOver = () => until(async () => [base, undefined].every((server) => listed("redrive replay list --json", server)[0].state === "cancelled"), "it is over, in both");
const giveUp = async () => {
  const address = new URL(page.url()).pathname;
  await act(`${address}/change?verb=cancel`, { then: /^Cancel/ });
  await isOver();
};
await act(`/replays/new?cause=${whole}`, { fill: { name: "again", ramp: "1, 2", refail_max: "50 %", rate: "5/s" }, then: /^Replay \d/ });
const address = new URL(page.url()).pathname;
await until(async () => [base, undefined].every((server) => listed("redrive replay list --json", server)[0].state === "running"), "it runs");
await act(address, { called: "Pause", then: "Pause" });
await act(`${address}/change?verb=resume`, { then: "Resume" });
await act(`${address}/change?verb=rate`, { fill: { rate: "7/s" }, then: "Change the rate" });
await visit("/replays");
await page.goto(base + address);
await giveUp();
await act(`/causes/${whole}`, { called: "Replay", does: by(/^Replay \d/, /^Replay \d/) });
await giveUp();
await act(`/replays/new?cause=${whole}`, { tick: "input[name=from][value=refetch]", then: /^Replay \d/ });
await giveUp();
// One letter each.
const at = (n) => `/letters/${letters[n].id}`;
await act(at(4), { called: "Retry now", does: by("Retry now…", /^Retry/) });
await visit(at(5));
await page.locator("#input").fill(JSON.stringify({ ...letters[5].input, extra: "it's more" }));
await page.getByRole("button", { name: "See what changes…" }).click();
await page.locator("ins").first().waitFor();
await follow({ does: press(/^Retry with/) });
await act(at(6), { called: "Discard", does: async () => { await page.goto(`${base}/letters/discard?id=${letters[6].id}`); await page.locator("#why").fill("the reason"); await press(/^Discard/)(); } });
await act(`/letters/discard?id=${letters[9].id}`, { fill: { why: "nobody's" }, then: /^Discard/ });
const tickLetters = async (numbers) => {
  await visit("/letters");
  for (const n of numbers) await page.locator(`#letter-${letters[n].id} input[type=checkbox]`).check();
};
// Not those whose text is discarded below: of them one store may have sent some, and the other not yet.
await tickLetters([7, 8]);
await page.getByRole("button", { name: "Replay 2 selected…" }).click();
await page.waitForURL(/\/replays\/new/);
await follow({ does: press(/^Replay \d/) });
await tickLetters([10, 11]);
await page.getByRole("button", { name: "Discard 2 selected…" }).click();
await page.waitForURL(/\/letters\/discard/);
await page.locator("#why").fill("gone for good");
await follow({ does: press(/^Discard/) });
await act("/letters/discard?text=no+such+page", { fill: { why: "they closed" }, then: /^Discard/ });
await visit("/activity");
// From here on everybody signs in.
await visit("/settings/tokens");
await page.locator("#name").fill("ada");
const line = await page.locator("code[data-line]").textContent();
await page.getByRole("button", { name: "Make a token" }).click();
const token = await page.locator("#secret").textContent();
signIn(token);
shell(line);
ran(line);
const [made] = listed("redrive token list --json");
check(made.name === "ada" && made.role === "admin", JSON.stringify(made));
await until(async () => (await page.goto(`${base}/settings/tokens`)).url().includes("/login"), "everybody signs in");
await page.locator("#token").fill(token);
await page.getByRole("button", { name: "Sign in" }).click();
await page.waitForURL(/settings/);
await page.locator("#name").fill("eve");
await page.locator("#pipelines").fill("shop, mill-*");
await page.locator("#expires").fill("90d");
await page.locator("input[name=payloads][value=no]").check();
await follow({ does: press("Make a token") });
check(listed("redrive token list --json").some((one) => one.name === "eve" && one.role === "viewer" && one.payloads === false && one.pipelines.length === 2), "with no more rights than were asked for");
await act("/settings/tokens/eve/revoke", { then: "Revoke eve" });
// It leaves a replay behind that the server has not.
await runs(at(3), "Edit and retry");
// Pages that were saved, and rules that work from them, are in saved.mjs: a command that was typed has none. TARGET stands for what is to be filled in.
await end(/redrive replay try|TARGET/);
