const fs = require("node:fs");

const API = "http://127.0.0.1:8000";
const KEY = process.env.SOLVER_KEY;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const ask = async (path, options) => (await fetch(`${API}${path}`, options)).json();

async function solve(puzzle) {
  const body = new URLSearchParams({ key: KEY, method: "userrecaptcha", json: 1, ...puzzle });
  const task = await ask("/in.php", { method: "POST", body });
  if (task.status !== 1) throw new Error(task.request);
  const query = new URLSearchParams({ key: KEY, action: "get", json: 1, id: task.request });
  for (let poll = 0; poll < 24; poll++) {
    await sleep(5000);
    const answer = await ask(`/res.php?${query}`);
    if (answer.status === 1) return answer.request;
    if (answer.request !== "CAPCHA_NOT_READY") throw new Error(answer.request);
  }
  throw new Error("timed out");
}

async function main() {
  const failures = [];
  for (const line of fs.readFileSync("puzzles.jsonl", "utf8").split("\n").filter(Boolean)) {
    const puzzle = JSON.parse(line);
    for (let attempt = 0; ; attempt++) {
      try {
        console.log(JSON.stringify({ ...puzzle, token: await solve(puzzle) }));
        break;
      } catch (error) {
        if (attempt === 2) {
          failures.push({ ...puzzle, error: error.message });
          fs.writeFileSync("failures.json", JSON.stringify(failures));
          break;
        }
        await sleep(1000 * 2 ** attempt);
      }
    }
  }
}

main();
