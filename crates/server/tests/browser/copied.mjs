// Every action of a page beside the command that it offers: `node copied.mjs ADDRESS COPY REDRIVE FOLDER`, where FOLDER is that of the server. The form is sent to the server, the command
// is run in a folder with a copy of its store, and both stores must say the same then. Each command that any of these pages offers must have been run by the end.
import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { check, launch, until, visitOf } from "./browser.mjs";

const [base, copy, redrive, server] = process.argv.slice(2);
let token;
const EDITOR = `${copy}/edit.sh`;
writeFileSync(EDITOR, `#!/bin/sh\nsed -i '0,/{/s//{"extra": "more",/' "$1"\n`);
chmodSync(EDITOR, 0o755);
const shell = (line, server) => {
  const env = { ...process.env, EDITOR, ...(server ? { REDRIVE_SERVER: server, ...(token && { REDRIVE_TOKEN: token }) } : {}) };
  const line_ = line.replaceAll(/(^|&& )redrive /g, `$1${redrive} `);
  return execFileSync("sh", ["-c", line_], { cwd: copy, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
};
// Lists are one value a line; what fires is one document, with how its sinks fare, and so is what is shown.
const parsed = (text) => {
  if (!text.startsWith("{\n")) return text.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const shown = JSON.parse(text);
  return shown.alerts ?? [shown];
};
const listed = (line, server) => parsed(shell(line, server));

// What differs between two stores that had the same done to them: times, names of replays, who drives them, and by which way it was asked. Whoever types a command of their own has
// letters pinned to it, which wait for a worker that has it; a server that knows no command sends them at once.
const PASSING = /^(at|since|.*_at|.*_seen|version|by|created_by|actor|via|trend|last_24h|pins|saved|workers|seen|seen_by|now|due|due_since|bytes)$/;
const plain = (value) => (typeof value === "string" ? value.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "#").replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "#").replace(/^by .*/, "by #").replace("cancelling", "cancelled") : value);
const MINUTE = 60000;
function differences(form, command, at = "") {
  if (at.endsWith(".progress")) return differences(form?.total, command?.total, `${at}.total`);
  // What is typed in one line is about the letters of that moment, a form about those that were looked at.
  if (at.endsWith("selection.until") && !(form && command)) return [];
  // What is written down until when was asked for at two moments.
  if (/until$/.test(at) && form && command && Math.abs(Date.parse(form) - Date.parse(command)) < MINUTE) return [];
  if (/until$/.test(at) && form !== command) return [`${at}: ${form} by the form, ${command} by the command`];
  if (form && command && typeof form === "object" && typeof command === "object") {
    const keys = [...new Set([...Object.keys(form), ...Object.keys(command)])].filter((key) => !PASSING.test(key));
    return keys.flatMap((key) => differences(form[key], command[key], `${at}.${key}`));
  }
  return plain(form) === plain(command) ? [] : [`${at}: ${JSON.stringify(form)} by the form, ${JSON.stringify(command)} by the command`];
}
// What an action is about, beside the record of what was done.
const ABOUT = [[/ cause /, "cause list --all --json"], [/ breaker /, "breaker list --json"], [/ pipeline /, "pipeline list --json"], [/ alert /, "alert list --all --json"], [/ replay /, "replay list --json"], [/ token /, "token list --json"]];
const listsOf = (line) => ["activity --json", ...ABOUT.filter(([words]) => words.test(line)).map(([, list]) => list)];
const differ = (lists) => lists.flatMap((list) => differences(listed(`redrive ${list}`, base), listed(`redrive ${list}`)).map((what) => `${list} ${what}`));

// What a command is, without what it is about: its words and flags. A form adds flags as it is filled in.
const shape = (line) => {
  const [, noun, verb, ...rest] = line.split(" && ")[0].split(" ");
  const flags = [verb, ...rest].filter((word) => word?.startsWith("--")).sort();
  return [noun, /^[a-z]+$/.test(verb ?? "") ? verb : "", ...flags].filter(Boolean).join(" ");
};
const [offered, run] = [new Map(), []];
const isRun = (line, isForm) => run.some((known) => (isForm ? shape(line).split(" ").every((word) => shape(known).split(" ").includes(word)) : shape(known) === shape(line)));
// What is only read is run at once, of both stores, and says the same.
const READS = /^redrive (activity|\w+ (list|show))\b/;

const browser = await launch();
const { page, leave } = await visitOf(browser, base);
const press = (name) => async () => page.getByRole("button", { name }).first().click();
const isSame = async (what, differ) => {
  let found = [];
  await until(async () => !(found = differ()).length, "both stores say the same").catch(() => check(false, `after ${what}\n${found.join("\n")}`));
};
let begun = false;
// A replay has an id of its own in each store.
const ofCopy = (line) => line.replace(/( replay (?!start)\w+) [0-9a-f]{8}-[0-9a-f-]{27}/, (_, words) => `${words} ${listed("redrive replay list --json")[0].id}`);

// Notes what a page offers, and runs what is only read.
async function offers() {
  for (const code of await page.locator("main details.cli code").all()) {
    const [line, isForm] = [await code.textContent(), (await code.getAttribute("data-line")) !== null];
    if (line.includes("…") || (!isForm && isRun(line))) continue;
    if (!READS.test(line)) offered.set(shape(line), { line, isForm, at: page.url() });
    else {
      const [there, here] = [`${line} --json`, `${ofCopy(line)} --json`];
      // Letters that a replay has are under way at one and wait at the other.
      if (begun && /redrive (dead|replay|job|cause)/.test(line)) listed(here);
      else await isSame(line, () => differences(listed(there, base), listed(here)));
      run.push(line);
    }
  }
}

async function visit(path) {
  await page.goto(base + path);
  await offers();
}

// One action: the page it is on, what is filled in, the command that is offered (by what it is called where there are several), and how it is done.
async function act(path, { fill = {}, tick, called, then, does = press(then) }) {
  await visit(path);
  for (const [id, text] of Object.entries(fill)) await page.locator(`#${id}`).fill(text);
  if (tick) await page.locator(tick).check();
  await follow({ called, does });
}

const lineOf = (called) => (called ? page.locator(`details.cli dt:text-is("${called}") + dd code`).first() : page.locator("code[data-line], main details.cli > code").last()).textContent();

async function follow({ called, does }) {
  await offers();
  const line = await lineOf(called);
  shell(ofCopy(line));
  await does();
  await page.waitForLoadState();
  run.push(line);
  await isSame(line, () => differ(listsOf(line)));
}

// A command that works by itself, where a form leaves that to workers: that it runs, to whatever end.
async function runs(path, called) {
  await visit(path);
  const line = await lineOf(called);
  try {
    shell(line);
  } catch (error) {
    check(error.status === 3, `${line}: ${error.stderr}`);
  }
  run.push(line);
}
// By a link to a form that is sent as it is.
const by = (link, button) => async () => {
  await page.getByRole("link", { name: link }).first().click();
  await page.waitForLoadState();
  await press(button)();
};

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
begun = true;
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
await act(`/letters/discard?id=${letters[7].id}`, { fill: { why: "nobody's" }, then: /^Discard/ });
const tickLetters = async (numbers) => {
  await visit("/letters");
  for (const n of numbers) await page.locator(`#letter-${letters[n].id} input[type=checkbox]`).check();
};
await tickLetters([8, 9]);
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
token = await page.locator("#secret").textContent();
shell(line);
run.push(line);
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
// Tries need pages that were saved and rules that work from them, which a command that was typed has not: they are not run here. TARGET stands for what is to be filled in.
const ELSEWHERE = /redrive replay try|TARGET/;
const never = [...offered.values()].filter(({ line, isForm }) => !ELSEWHERE.test(line) && !isRun(line, isForm));
check(!never.length, `offered, and never run:\n${never.map(({ line, at }) => `${line} (${at})`).join("\n")}`);
await leave();
await browser.close();
console.log(run.join("\n"));
process.exit(0);
