// What can be done with pages that were saved, by the form and by the command that is offered beside it: `node saved.mjs ADDRESS COPY REDRIVE FOLDER RULE CORRECTED`. ADDRESS serves what the
// demo left in FOLDER, COPY is a copy of it, both with workers; one rule of their files finds nothing any more, and is corrected on the way.
import { readFileSync, writeFileSync } from "node:fs";
import { check, until } from "./browser.mjs";
import { act, base, begin, by, copy, differences, end, follow, isSame, listed, page, press, ran, server, shell, visit } from "./copying.mjs";

const [rule, corrected] = process.argv.slice(6);
const [{ id: cause }] = listed("redrive cause list --json");
const letters = () => listed(`redrive dead list --cause ${cause} --limit 1000 --json`).sort((one, two) => one.number - two.number);
await visit(`/causes/${cause}`);
await tryHere();
for (const path of [`/letters/${letters()[0].id}`, "/letters?sort=oldest", "/pipelines/catalog"]) await visit(path);

// The command of a try that this page offers; it says so if something would still fail.
async function tryHere() {
  const line = await page.locator("main details.cli code", { hasText: "redrive replay try" }).first().textContent();
  try {
    shell(line);
  } catch (error) {
    check(error.status === 3, `${line}: ${error.stderr}`);
  }
  ran(line);
  return line;
}

// A try changes nothing; what came of it is kept.
async function attempt(recovered) {
  await visit(`/replays/new?cause=${cause}`);
  await press(/^Try /)();
  const is = `${recovered} of 60 would recover`;
  let said;
  // A worker may not have read the file yet: it is tried again then.
  await until(async () => {
    said = (await page.locator("main").innerText()).match(/\d+ of 60 would recover/)?.[0];
    if (said && said !== is && (await page.getByRole("button", { name: "Try again" }).isVisible())) await press("Try again")();
    return said === is;
  }, is);
  const line = await tryHere();
  // Which letter's record is shown is chance.
  const tried = (server) => listed(`redrive replay try --show --cause ${cause} --json`, server).map(({ outcome: { record, ...outcome }, ...one }) => ({ ...one, outcome }));
  await isSame(line, () => differences(tried(base), tried()));
}

const isOver = () => until(async () => [base, undefined].every((server) => listed("redrive replay list --json", server).every(({ state }) => /^(done|cancelled)/.test(state))), "replays are over, in both");

await attempt(0);
for (const folder of [server, copy]) {
  const file = `${folder}/redrive.toml`;
  writeFileSync(file, readFileSync(file, "utf8").replace(rule, corrected));
}
await attempt(57);
begin();
// Those that passed, from their saved pages; then what is left, all from saved.
await follow({ does: press("Replay 57") });
await isOver();
const left = letters();
check(left.length === 3, `${left.length} are left`);
await act(`/replays/new?cause=${cause}`, { tick: "input[name=from][value=saved]", then: /^Replay \d/ });
await isOver();
// They died of something else.
await act(`/letters/${left[0].id}`, { called: "Retry from saved", does: by("Retry from saved…", /^Retry/) });
await isOver();
await act(`/letters/${left[1].id}`, { called: "Fetch again", does: by("Fetch again…", /^(Retry|Fetch)/) });
await isOver();
const spent = `/letters/${left[1].id}`;
await act(spent, { called: "Retry from saved", does: by("Retry from saved…", /^Retry/) });
await isOver();
await visit(`/replays/new?id=${left[1].id}`);
await tryHere();
await act(`/replays/new?id=${left[1].id}`, { then: /^Replay \d/ });
// What needs no saved page is in copied.mjs.
await end(/^redrive (?!replay (try|start))|^redrive replay start --cause \w+ --detach$/);
