// Every action of a page beside the command that it offers: `node copied.mjs ADDRESS COPY REDRIVE FOLDER`, where FOLDER is that of the server. The form is sent to the server, the command
// is run in a folder with a copy of its store, and both stores must say the same then.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { check, launch, until, visitOf } from "./browser.mjs";

const [base, copy, redrive, server] = process.argv.slice(2);
const shell = (line, server) => {
  const env = { ...process.env, ...(server ? { REDRIVE_SERVER: server } : {}) };
  return execFileSync("sh", ["-c", line.replace(/^redrive /, `${redrive} `)], { cwd: copy, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
};
// Lists are one value a line; what fires is one document, with how its sinks fare.
const parsed = (text) => (text.startsWith("{\n") ? JSON.parse(text).alerts : text.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line)));
const listed = (line, server) => parsed(shell(line, server));

// What differs between two stores that had the same done to them: times, names of replays, who drives them, and by which way it was asked.
const PASSING = /^(at|since|until|.*_at|.*_seen|id|version|by|actor|via|trend|last_24h|pins|progress|workers|why|number|seen|now)$/;
const same = (value) => {
  if (Array.isArray(value)) return value.map(same);
  if (typeof value === "string") return value.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "#").replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "#").replace("cancelling", "cancelled");
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !PASSING.test(key)).map(([key, inner]) => [key, same(inner)]).sort());
};
// What an action is about, beside the record of what was done.
const ABOUT = [[/ cause /, "cause list --all --json"], [/ breaker /, "breaker list --json"], [/ pipeline /, "pipeline list --json"], [/ alert /, "alert list --all --json"], [/ replay /, "replay list --json"]];
const listsOf = (line) => ["activity --json", ...ABOUT.filter(([words]) => words.test(line)).map(([, list]) => list)];
const facts = (lists, server) => lists.map((list) => JSON.stringify(same(listed(`redrive ${list}`, server))));

const browser = await launch();
const { page, leave } = await visitOf(browser, base);
const press = (name) => async () => page.getByRole("button", { name }).first().click();
const run = [];

// One action: the page it is on, what is filled in, the command that is offered (by what it is called where there are several), and how it is done.
async function act(path, { fill = {}, called, then, does = press(then), translate = (line) => line }) {
  await page.goto(base + path);
  for (const [id, text] of Object.entries(fill)) await page.locator(`#${id}`).fill(text);
  await follow({ called, does, translate });
}

async function follow({ called, does, translate = (line) => line }) {
  const one = page.locator("code[data-line], main details.cli > code").last();
  const line = called ? await page.locator(`details.cli dt:text-is("${called}") + dd code`).first().textContent() : await one.textContent();
  shell(translate(line));
  await does();
  await page.waitForLoadState();
  run.push(line);
  let differ = [];
  await until(async () => {
    const lists = listsOf(line);
    const [there, here] = [facts(lists, base), facts(lists)];
    differ = there.flatMap((list, at) => (list === here[at] ? [] : [`${lists[at]}\nform:    ${list}\ncommand: ${here[at]}`]));
    return !differ.length;
  }, "both stores say the same").catch(() => check(false, `after ${line}\n${differ.join("\n")}`));
}

const [{ id: cause }, { id: other }] = listed("redrive cause list --json");
await act(`/causes/${cause}`, { called: "Assign me", then: "Assign me" });
await act(`/causes/${cause}`, { called: "Give back", then: "Give back" });
await act(`/causes/${cause}/change?verb=mute`, { fill: { until: "2h", per_hour: "7" }, then: "Mute" });
await act(`/causes/${cause}`, { called: "Unmute", then: "Unmute" });
await act(`/causes/${cause}/change?verb=note`, { fill: { text: "it's the layout" }, then: "Note" });
await act(`/causes/${cause}`, { called: "Resolve", then: "Resolve" });
await act(`/causes/${cause}`, { called: "Reopen", then: "Reopen" });
const tickBoth = async () => {
  await page.goto(`${base}/causes?tab=all`);
  for (const id of [cause, other]) await page.locator(`#cause-${id} input[type=checkbox]`).check();
};
for (const called of ["Assign me", "Resolve"]) {
  await tickBoth();
  await follow({ called, does: press(called) });
}
await tickBoth();
await press("Mute 2…")();
await page.locator("#until").fill("3h");
await follow({ does: press("Mute 2 causes") });
for (const id of [cause, other]) await act(`/causes/${id}`, { called: "Reopen", then: "Reopen" });
await act(`/causes/${other}/change?verb=merge&into=${cause}`, { then: "Merge" });
await act(`/causes/${cause}/change?verb=split`, { fill: { text: "no such page" }, then: "Split" });
await act("/breakers/turn?verb=hold&target=shop.example&pipeline=shop", { fill: { until: "2h", why: "they asked" }, then: "Hold shop.example" });
await act("/", { called: "Probe shop.example", then: "Probe" });
await act("/breakers/turn?verb=close&target=shop.example&pipeline=shop", { then: /^Let/ });
await act("/pipelines/shop/pause", { fill: { why: "it moves" }, then: "Pause shop" });
await act("/pipelines/shop", { called: "Resume", then: "Resume" });
await act("/alerts", { called: "Acknowledge", then: "Acknowledge" });
await act("/alerts", { called: "Assign me", then: "Assign me" });
await act("/alerts/change?verb=snooze&alert=rate%2Fshop", { fill: { until: "3h", why: "it's known" }, then: "Snooze" });
await act("/alerts?state=snoozed", { called: "Wake", then: "Wake" });
// A test tells sinks and writes nothing: both of them were told.
const told = () => [server, copy].map((folder) => readFileSync(`${folder}/told.txt`, "utf8").match(/this is a test/gi)?.length ?? 0);
const before = told();
await act("/alerts", { called: "Send test", then: "Send test" });
check((await page.locator("main").innerText()).includes("command: told"), "it says that the sink was told");
check(told().every((count, at) => count === before[at] + 1), `each was told once: ${before} and then ${told()}`);
for (const state of ["firing", "snoozed", "ended"]) {
  await page.goto(`${base}/alerts?state=${state}`);
  const shown = await page.locator("#alerts tr").count();
  const line = await page.locator("main details.cli > code").first().textContent();
  check(shell(line) === "" || listed(`${line} --json`).length === shown, `${line} lists what ${state} shows: ${shown}`);
  run.push(line);
}
await act(`/replays/new?cause=${cause}`, { fill: { name: "again", ramp: "1, 2", refail_max: "50 %", rate: "5/s" }, then: /^Replay \d/ });
const address = new URL(page.url()).pathname;
const translate = (line) => line.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, listed("redrive replay list --json")[0].id);
await until(async () => listed("redrive replay list --json", base)[0].state === "running", "it runs");
await act(address, { called: "Pause", then: "Pause", translate });
await act(`${address}/change?verb=resume`, { then: "Resume", translate });
await act(`${address}/change?verb=rate`, { fill: { rate: "7/s" }, then: "Change the rate", translate });
await act(`${address}/change?verb=cancel`, { then: /^Cancel/, translate });
const letters = listed("redrive dead list --json", base);
await until(async () => listed("redrive replay list --json", base)[0].state === "cancelled", "it is over");
await act(`/letters/${letters[0].id}`, {
  called: "Retry now",
  does: async () => { await page.getByRole("link", { name: "Retry now…" }).click(); await press(/^Retry with/)(); },
});
await page.goto(`${base}/letters/${letters[1].id}`);
await page.locator("#input").fill(JSON.stringify({ ...letters[1].input, extra: "it's more" }));
await page.getByRole("button", { name: "See what changes…" }).click();
await page.locator("ins").first().waitFor();
await follow({ does: press(/^Retry with/) });
await act(`/letters/discard?id=${letters[2].id}`, { fill: { why: "nobody's" }, then: /^Discard/ });
// Letters that were sent meanwhile are under way where there is a server: this one is nowhere.
for (const server of [base, undefined]) check(!listed("redrive dead list --json", server).some((one) => one.id === letters[2].id), "it is discarded");
// From here on everybody signs in.
await page.goto(`${base}/settings/tokens`);
await page.locator("#name").fill("ada");
const line = await page.locator("code[data-line]").textContent();
await page.getByRole("button", { name: "Make a token" }).click();
await page.locator("#secret").waitFor();
shell(line);
const [made] = listed("redrive token list --json");
check(made.name === "ada" && made.role === "admin", JSON.stringify(made));
run.push(line);
await leave();
await browser.close();
console.log(run.join("\n"));
process.exit(0);
