// A worker that leases jobs from `redrive serve`. Node 20 or newer, no packages.
//
//     REDRIVE_SERVER=http://127.0.0.1:7171 REDRIVE_TOKEN=... node worker.mjs shop
const server = (process.env.REDRIVE_SERVER ?? 'http://127.0.0.1:7171') + '/api/v1';
const ttl = 60;
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function ask(path, body) {
  const headers = { 'content-type': 'application/json' };
  if (process.env.REDRIVE_TOKEN) headers.authorization = `Bearer ${process.env.REDRIVE_TOKEN}`;
  for (;;) {
    let answer;
    try {
      answer = await fetch(server + path, { method: 'POST', headers, body: JSON.stringify(body) });
      if (answer.ok) return await answer.json();
    } catch {
      await sleep(1); // The server is away: leases are still ours until they run out.
      continue;
    }
    if (answer.status !== 429 && answer.status !== 503) throw new Error(await answer.text());
    await sleep(Number(answer.headers.get('retry-after') ?? 1));
  }
}

// Does the work; what it throws is the failure.
async function handle(job) {
  return { title: job.input.title.toUpperCase() };
}

async function run(worker, job) {
  const renew = () => ask('/leases/renew', { worker, leases: [job.lease], ttl });
  const renewing = setInterval(() => renew().catch(() => {}), (ttl / 3) * 1000);
  let ended = { lease: job.lease, verdict: 'done' };
  try {
    ended.result = await handle(job);
  } catch (error) {
    ended = { ...ended, verdict: 'failed', failure: { message: String(error.message), error_type: error.name } };
  }
  clearInterval(renewing);
  await ask('/leases/settle', { worker, jobs: [ended] });
}

const untilEmpty = process.argv.includes('--until-empty');
const pipelines = process.argv.slice(2).filter((name) => name !== '--until-empty');
for (let worker; ; ) {
  const leased = await ask('/leases', { pipelines, max: 10, wait: untilEmpty ? 1 : 20, ttl, ...(worker && { worker }) });
  worker = leased.worker;
  await Promise.all(leased.leases.map((job) => run(worker, job)));
  if (untilEmpty && leased.leases.length === 0 && leased.open === 0) break;
}
