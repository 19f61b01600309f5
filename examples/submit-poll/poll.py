import json, os, sys

import requests

API, KEY = "http://127.0.0.1:8000", os.environ["SOLVER_KEY"]

job = json.load(sys.stdin)["input"]
puzzle, params = job["puzzle"], {"key": KEY, "action": "get", "json": 1, "id": job["task_id"]}
response = requests.get(f"{API}/res.php", params=params, timeout=10)
response.raise_for_status()
answer = response.json()
code = answer["request"]
if answer["status"] == 1:
    print(json.dumps({**puzzle, "token": code}))
elif code == "ERROR_CAPTCHA_UNSOLVABLE" and puzzle.get("tries", 1) < 2:  # given up: once more, as another task
    print(json.dumps({"enqueue": [{"pipeline": "submit", "input": {**puzzle, "tries": 2}}]}))
else:
    pending = code == "CAPCHA_NOT_READY"
    failure = {"code": "pending" if pending else code, "message": code, "retry_after": 1 if pending else None}
    print(json.dumps({"failure": {**failure, "stage": "poll"}}))
    sys.exit(1)
