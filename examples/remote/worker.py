"""A worker that leases jobs from `redrive serve`, in 60 lines and without packages:
REDRIVE_SERVER=http://127.0.0.1:7171 python3 worker.py shop, with REDRIVE_TOKEN=... once the store has a token"""
import http.client, json, os, sys, threading, time, urllib.error, urllib.parse, urllib.request

SERVER, TTL = os.environ.get("REDRIVE_SERVER", "http://127.0.0.1:7171") + "/api/v1", int(os.environ.get("TTL", 60))

def handle(job):  # Does the work. What it raises is the failure.
    return {"title": job["input"]["title"].upper()}

def token():  # REDRIVE_TOKEN, or what a server of this machine left for its user while its store has no token.
    server, state = urllib.parse.urlsplit(SERVER), os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    file = f"{state}/redrive/servers/{server.port}"
    here = server.hostname in ("127.0.0.1", "localhost", "::1") and os.path.exists(file)
    if os.environ.get("REDRIVE_TOKEN") or not here:
        return os.environ.get("REDRIVE_TOKEN", "")
    check_owner(server.port)
    return open(file).read().strip()

def check_owner(port):  # Another user may listen where a server was that was killed. Linux says who listens.
    tables = [file for file in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(file)]
    lines = [line.split() for file in tables for line in open(file)]
    users = {int(line[7]) for line in lines if line[3] == "0A" and line[1].endswith(f":{port:04X}")}
    if users - {0, os.geteuid()}:
        print(f"port {port} belongs to another user", file=sys.stderr, flush=True)
        os._exit(1)  # Whichever thread asks.
    if tables and not users:
        raise ConnectionRefusedError  # The server is away.

def ask(path, body):
    while True:
        try:
            headers = {"content-type": "application/json", "authorization": "Bearer " + token()}
            request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                raise
            time.sleep(float(error.headers.get("retry-after", 1)))
        except (OSError, http.client.HTTPException):
            time.sleep(1)  # The server is away: leases are still ours until they run out.

def run(worker, job, over):
    def renew():
        while not over.wait(TTL / 3):
            ask("/leases/renew", {"worker": worker, "leases": [job["lease"]], "ttl": TTL})
    threading.Thread(target=renew, daemon=True).start()
    try:
        ended = {"verdict": "done", "result": handle(job)}
    except Exception as error:
        ended = {"verdict": "failed", "failure": {"message": str(error), "error_type": type(error).__name__}}
    over.set()
    ask("/leases/settle", {"worker": worker, "jobs": [{"lease": job["lease"], **ended}]})

pipelines, until_empty, known = [name for name in sys.argv[1:] if name != "--until-empty"], "--until-empty" in sys.argv, {}
while not (until_empty and known and not leased["leases"] and leased["open"] == 0):
    leased = ask("/leases", {"pipelines": pipelines, "wait": 1 if until_empty else 20, "ttl": TTL, **known})
    known = {"worker": leased["worker"]}  # So that it stays the same worker.
    [run(leased["worker"], job, threading.Event()) for job in leased["leases"]]
