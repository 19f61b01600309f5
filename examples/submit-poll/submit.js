const fs = require("node:fs");

const API = "http://127.0.0.1:8000";
const KEY = process.env.SOLVER_KEY;

async function main() {
  const puzzle = JSON.parse(fs.readFileSync(0, "utf8")).input;
  const { googlekey, pageurl } = puzzle;
  const body = new URLSearchParams({ key: KEY, method: "userrecaptcha", json: 1, googlekey, pageurl });
  const response = await fetch(`${API}/in.php`, { method: "POST", body, signal: AbortSignal.timeout(10_000) });
  if (!response.ok) return fail({ http_status: response.status, message: response.statusText });
  const { status, request } = await response.json();
  if (status !== 1) return fail({ code: request, message: request });
  const input = { task_id: request, puzzle };
  console.log(JSON.stringify({ enqueue: [{ pipeline: "poll", key: request, input }] }));
}

function fail(failure) {
  console.log(JSON.stringify({ failure: { ...failure, stage: "submit" } }));
  process.exitCode = 1;
}

main(); // what is not caught is known by its type and its code
