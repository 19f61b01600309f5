import json, os, sys

import requests

API, KEY = "http://127.0.0.1:8000", os.environ["SOLVER_KEY"]

puzzle = json.load(sys.stdin)["input"]
data = {"key": KEY, "method": "userrecaptcha", "json": 1, "googlekey": puzzle["googlekey"], "pageurl": puzzle["pageurl"]}
response = requests.post(f"{API}/in.php", data=data, timeout=10)
response.raise_for_status()  # what is not caught is known by its type, and by its status
answer = response.json()
if answer["status"] != 1:
    print(json.dumps({"failure": {"code": answer["request"], "message": answer["request"], "stage": "submit"}}))
    sys.exit(1)
task = answer["request"]
print(json.dumps({"enqueue": [{"pipeline": "poll", "key": task, "input": {"task_id": task, "puzzle": puzzle}}]}))
