import json, sys

job = json.load(sys.stdin)
print(json.dumps({"url": job["input"]["url"], "price": 3.99}))  # this is where yours goes
