"""A worker that leases jobs from `redrive serve`. Standard library only.

    REDRIVE_SERVER=http://127.0.0.1:7171 REDRIVE_TOKEN=... python3 worker.py shop
"""
import json, os, sys, threading, time, urllib.error, urllib.request

SERVER = os.environ.get("REDRIVE_SERVER", "http://127.0.0.1:7171") + "/api/v1"
TTL = 60


def ask(path, body):
    headers = {"content-type": "application/json"}
    if os.environ.get("REDRIVE_TOKEN"):
        headers["authorization"] = "Bearer " + os.environ["REDRIVE_TOKEN"]
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                raise
            time.sleep(float(error.headers.get("retry-after", 1)))
        except OSError:
            time.sleep(1)  # The server is away: leases are still ours until they run out.


def handle(job):
    """Does the work; what it raises is the failure."""
    return {"title": job["input"]["title"].upper()}


def run(worker, job):
    over = threading.Event()

    def renew():
        while not over.wait(TTL / 3):
            ask("/leases/renew", {"worker": worker, "leases": [job["lease"]], "ttl": TTL})

    threading.Thread(target=renew, daemon=True).start()
    ended = {"lease": job["lease"], "verdict": "done"}
    try:
        ended["result"] = handle(job)
    except Exception as error:
        ended.update(verdict="failed", failure={"message": str(error), "error_type": type(error).__name__})
    over.set()
    ask("/leases/settle", {"worker": worker, "jobs": [ended]})


def main(pipelines, until_empty):
    worker = None
    while True:
        asked = {"pipelines": pipelines, "max": 10, "wait": 1 if until_empty else 20, "ttl": TTL}
        leased = ask("/leases", {**asked, "worker": worker} if worker else asked)
        worker = leased["worker"]
        for job in leased["leases"]:
            run(worker, job)
        if until_empty and not leased["leases"] and leased["open"] == 0:
            return


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--until-empty"], "--until-empty" in sys.argv)
