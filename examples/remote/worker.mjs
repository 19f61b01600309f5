// A worker that leases jobs from `redrive serve`, in 70 lines and without packages (Node 20 or newer):
// REDRIVE_SERVER=http://127.0.0.1:7171 node worker.mjs shop, with REDRIVE_TOKEN=... once the store has a token
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';

const server = (process.env.REDRIVE_SERVER ?? 'http://127.0.0.1:7171') + '/api/v1';
const ttl = Number(process.env.TTL ?? 60);
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

// Does the work. What it throws is the failure.
const handle = async (job) => ({ title: job.input.title.toUpperCase() });

// REDRIVE_TOKEN, or what a server of this machine left for its user while its store has no token.
function token() {
  const { hostname, port } = new URL(server);
  const file = `${process.env.XDG_STATE_HOME || homedir() + '/.local/state'}/redrive/servers/${port}`;
  const here = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname) && existsSync(file);
  if (process.env.REDRIVE_TOKEN || !here) return process.env.REDRIVE_TOKEN ?? '';
  checkOwner(Number(port));
  return readFileSync(file, 'utf8').trim();
}

// Another user may listen where a server was that was killed. Linux says who listens.
function checkOwner(port) {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].filter(existsSync);
  const lines = tables.flatMap((file) => readFileSync(file, 'utf8').split('\n').map((line) => line.trim().split(/\s+/)));
  const end = ':' + port.toString(16).toUpperCase().padStart(4, '0');
  const users = lines.filter((line) => line[3] === '0A' && line[1].endsWith(end)).map((line) => Number(line[7]));
  if (users.some((user) => user !== 0 && user !== process.geteuid())) {
    console.error(`port ${port} belongs to another user`);
    process.exit(1);
  }
  if (tables.length > 0 && users.length === 0) throw new Error('nobody listens');
}

async function ask(path, body) {
  const send = async () => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token()}` };
    return fetch(server + path, { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(30_000) });
  };
  for (;;) {
    const answer = await send().catch(() => null);
    // The server is away: leases are still ours until they run out.
    const wait = answer ? Number(answer.headers.get('retry-after') ?? 1) : 1;
    const text = await answer?.text().catch(() => null);
    if (answer?.ok && text != null) return JSON.parse(text);
    if (answer && text != null && ![429, 503].includes(answer.status)) throw new Error(text);
    await sleep(wait);
  }
}

async function run(worker, job) {
  const renewing = setInterval(() => ask('/leases/renew', { worker, leases: [job.lease], ttl }).catch(() => {}), ttl * 333);
  const failed = (error) => ({ verdict: 'failed', failure: { message: error.message, error_type: error.name } });
  const ended = await handle(job).then((result) => ({ verdict: 'done', result }), failed);
  clearInterval(renewing);
  await ask('/leases/settle', { worker, jobs: [{ lease: job.lease, ...ended }] });
}

const untilEmpty = process.argv.includes('--until-empty');
const pipelines = process.argv.slice(2).filter((name) => name !== '--until-empty');
for (let worker, leased; !untilEmpty || !leased || leased.leases.length > 0 || leased.open > 0; ) {
  leased = await ask('/leases', { pipelines, max: 10, wait: untilEmpty ? 1 : 20, ttl, ...(worker && { worker }) });
  worker = leased.worker; // So that it stays the same worker.
  await Promise.all(leased.leases.map((job) => run(worker, job)));
}
