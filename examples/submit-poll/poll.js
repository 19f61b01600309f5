const fs = require("node:fs");

const API = "http://127.0.0.1:8000";
const KEY = process.env.SOLVER_KEY;

async function main() {
  const { task_id, puzzle } = JSON.parse(fs.readFileSync(0, "utf8")).input;
  const query = new URLSearchParams({ key: KEY, action: "get", json: 1, id: task_id });
  const response = await fetch(`${API}/res.php?${query}`, { signal: AbortSignal.timeout(10_000) });
  if (!response.ok) return fail({ http_status: response.status, message: response.statusText });
  const { status, request } = await response.json();
  if (status === 1) return console.log(JSON.stringify({ ...puzzle, token: request }));
  if (request === "ERROR_CAPTCHA_UNSOLVABLE" && (puzzle.tries ?? 1) < 2) {
    // given up: once more, as another task
    return console.log(JSON.stringify({ enqueue: [{ pipeline: "submit", input: { ...puzzle, tries: 2 } }] }));
  }
  const pending = request === "CAPCHA_NOT_READY";
  fail({ code: pending ? "pending" : request, message: request, retry_after: pending ? 1 : undefined });
}

function fail(failure) {
  console.log(JSON.stringify({ failure: { ...failure, stage: "poll" } }));
  process.exitCode = 1;
}

main();
