// An action of a page beside the command that it offers: the form is sent to the server at ADDRESS, the command is run in a folder with a COPY of its store, and both stores must say the
// same then. Each command that any page offers that was visited must have been run by the end.
import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { check, launch, until, visitOf } from "./browser.mjs";

export const [base, copy, redrive, server] = process.argv.slice(2);
let token = process.env.LOCAL;
export const signIn = (secret) => (token = secret);
const EDITOR = `${copy}/edit.sh`;
writeFileSync(EDITOR, `#!/bin/sh\nsed -i '0,/{/s//{"extra": "more",/' "$1"\n`);
chmodSync(EDITOR, 0o755);
export const shell = (line, server) => {
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
export const listed = (line, server) => parsed(shell(line, server));

// What differs between two stores that had the same done to them: times, names of replays, who drives them, and by which way it was asked. Whoever types a command of their own has
// letters pinned to it, which wait for a worker that has it; a server that knows no command sends them at once.
const PASSING = /^(at|since|.*_at|.*_seen|version|by|created_by|actor|via|trend|last_24h|pins|saved|workers|seen|seen_by|now|due|due_since|bytes)$/;
const plain = (value) => (typeof value === "string" ? value.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "#").replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "#").replace(/^by .*/, "by #").replace("cancelling", "cancelled") : value);
const MINUTE = 60000;
export function differences(form, command, at = "") {
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
// What was run otherwise than by what is below.
export const ran = (line) => run.push(line);
const isRun = (line, isForm) => run.some((known) => (isForm ? shape(line).split(" ").every((word) => shape(known).split(" ").includes(word)) : shape(known) === shape(line)));
// What is only read is run at once, of both stores, and says the same.
const READS = /^redrive (activity|\w+ (list|show))\b/;

const browser = await launch();
const { page: visited, leave } = await visitOf(browser, base);
export const page = visited;
export const press = (name) => async () => page.getByRole("button", { name }).first().click();
export const isSame = async (what, differ) => {
  let found = [];
  await until(async () => !(found = differ()).length, "both stores say the same").catch(() => check(false, `after ${what}\n${found.join("\n")}`));
};
let begun = false;
export const begin = () => (begun = true);
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

// Goes to a page. A page that leads on by itself at that very moment is left again.
async function goTo(path) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await page.goto(base + path);
    } catch (error) {
      if (tries === 5 || !error.message.includes("interrupted by another navigation")) throw error;
    }
  }
}

export async function visit(path) {
  await goTo(path);
  await offers();
}

// One action: the page it is on, what is filled in, the command that is offered (by what it is called where there are several), and how it is done.
export async function act(path, { fill = {}, tick, called, then, does = press(then) }) {
  await visit(path);
  for (const [id, text] of Object.entries(fill)) await page.locator(`#${id}`).fill(text);
  if (tick) await page.locator(tick).check();
  await follow({ called, does });
}

const lineOf = (called) => (called ? page.locator(`details.cli dt:text-is("${called}") + dd code`).first() : page.locator("code[data-line], main details.cli > code").last()).textContent();

export async function follow({ called, does }) {
  await offers();
  const line = await lineOf(called);
  shell(ofCopy(line));
  await does();
  await page.waitForLoadState();
  run.push(line);
  await isSame(line, () => differ(listsOf(line)));
}

// A command that works by itself, where a form leaves that to workers: that it runs, to whatever end.
export async function runs(path, called) {
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
export const by = (link, button) => async () => {
  await page.getByRole("link", { name: link }).first().click();
  await page.waitForLoadState();
  await press(button)();
};

// Ends, if nothing is left that was offered and never run, other than what is run elsewhere.
export async function end(elsewhere) {
  const never = [...offered.values()].filter(({ line, isForm }) => !elsewhere.test(line) && !isRun(line, isForm));
  check(!never.length, `offered, and never run:\n${never.map(({ line, at }) => `${line} (${at})`).join("\n")}`);
  await leave();
  await browser.close();
  console.log(run.join("\n"));
  process.exit(0);
}
