// graphile-worker doing what bench/src/postgres does, for comparison: 1 KB jobs, every tenth of which fails for good.
//
//   node graphile.mjs TOOLS ADDRESS add CALLERS JOBS_EACH      prints jobs per second
//   node graphile.mjs TOOLS ADDRESS work PROCESSES JOBS        prints jobs per second
//
// TOOLS has node_modules with graphile-worker. ADDRESS is as in `host=/folder user=redrive dbname=postgres`.
import { createRequire } from "node:module";
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import path from "node:path";

const [tools, address, verb, first, second] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(tools), "package.json"));
const { run, makeWorkerUtils, Logger } = require("graphile-worker");
const { Pool } = require("pg");

const fields = Object.fromEntries(address.split(" ").map((field) => field.split("=")));
const pool = new Pool({ host: fields.host, user: fields.user, database: fields.dbname, max: 24 });
pool.on("error", () => {});
pool.on("connect", (client) => client.on("error", () => {}));
const logger = new Logger(() => () => {});
const body = "x".repeat(900);
const now = () => performance.timeOrigin + performance.now();

async function add(callers, each) {
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  const begun = now();
  const caller = async (c) => {
    for (let n = 0; n < each; n++) {
      await utils.addJob("task", { n, body }, { jobKey: `${c}-${n}-${begun}`, maxAttempts: 1 });
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, c) => caller(c)));
  const taken = (now() - begun) / 1000;
  await pool.query("delete from graphile_worker._private_jobs");
  await utils.release();
  console.log((callers * each) / taken);
}

async function fill(jobs) {
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  await pool.query("delete from graphile_worker._private_jobs");
  await pool.query(
    `select count(*) from graphile_worker.add_jobs(array(
       select ('task', json_build_object('n', n, 'body', $2::text), null, null, 1, null, null, null)::graphile_worker.job_spec
       from generate_series(1, $1::int) n))`,
    [jobs, body],
  );
  await pool.query("vacuum analyze graphile_worker._private_jobs");
  await utils.release();
}

// Its own advice for throughput: a local queue, and completions in batches.
async function worker() {
  let begun = 0, ended = 0, done = 0;
  const task = async ({ n }) => {
    begun ||= now();
    ended = now();
    done += 1;
    if (n % 10 === 0) throw new Error(`the price of product ${n} is missing`);
  };
  const preset = {
    worker: {
      concurrentJobs: 24, maxPoolSize: 24, pollInterval: 2000, completeJobBatchDelay: 0, failJobBatchDelay: 0,
      localQueue: { size: 500 },
    },
  };
  const runner = await run({ pgPool: pool, preset, taskList: { task }, noHandleSignals: true, logger });
  for (let idle = 0; idle < 3; ) {
    const before = done;
    await new Promise((resolve) => setTimeout(resolve, 500));
    idle = done === before ? idle + 1 : 0;
  }
  await runner.stop();
  process.send({ begun, ended, done });
  process.disconnect();
}

async function work(processes, jobs) {
  await fill(jobs);
  const self = fileURLToPath(import.meta.url);
  const results = await Promise.all(Array.from({ length: processes }, () => new Promise((resolve, reject) => {
    const child = fork(self, [tools, address, "worker"]);
    child.once("message", resolve);
    child.once("exit", (code) => code && reject(new Error(`a worker ended with ${code}`)));
  })));
  const active = results.filter(({ done }) => done > 0);
  const done = active.reduce((sum, { done }) => sum + done, 0);
  if (done !== jobs) throw new Error(`${done} of ${jobs} jobs were done`);
  const taken = Math.max(...active.map((r) => r.ended)) - Math.min(...active.map((r) => r.begun));
  await pool.query("delete from graphile_worker._private_jobs");
  console.log(jobs / (taken / 1000));
}

if (verb === "add") await add(Number(first), Number(second));
else if (verb === "work") await work(Number(first), Number(second));
else await worker();
await pool.end().catch(() => {});
