import json, os, re, sys
from pathlib import Path

import requests


def fail(exit_code, **failure):
    print(json.dumps({"failure": failure}))
    sys.exit(exit_code)


def types(error):  # requests wraps what happened: "ConnectionError from MaxRetryError from … from gaierror"
    return type(error).__name__ + (f" from {types(error.__context__)}" if error.__context__ else "")


url = json.load(sys.stdin)["input"]["url"]
try:
    response = requests.get(url, timeout=2)
except ValueError as error:  # InvalidURL, MissingSchema, …: no address, and no retry will make it one
    fail(65, message=str(error), error_type=types(error))
except requests.RequestException as error:  # timeouts and broken connections
    fail(1, message=str(error), error_type=types(error), stage="fetch")

Path(os.environ["REDRIVE_PAYLOAD"]).write_bytes(response.content)  # the evidence, kept if this attempt fails
if not response.ok:
    wait = response.headers.get("Retry-After")
    fail(1, http_status=response.status_code, message=response.reason, retry_after=wait, stage="fetch")

title = re.search(r'<h1 class="title">(.*?)</h1>', response.text)
price = re.search(r'<span class="price-tag-main">([\d.]+)</span>', response.text)
if not title or not price:
    missing = ".price-tag-main" if title else "h1.title"
    fail(1, reason="schema_validation", code="SelectorNotFound", message=missing, http_status=200, stage="extract")
print(json.dumps({"url": url, "title": title[1], "price": float(price[1])}))
