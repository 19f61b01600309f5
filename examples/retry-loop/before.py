import json, re, time

import requests

failures = []
for url in open("urls.txt").read().split():
    problem = None
    for attempt in range(4):
        try:
            response = requests.get(url, timeout=10)
            response.raise_for_status()
            title = re.search(r'<h1 class="title">(.*?)</h1>', response.text).group(1)
            price = re.search(r'<span class="price-tag-main">([\d.]+)</span>', response.text).group(1)
            print(json.dumps({"url": url, "title": title, "price": float(price)}))
            break
        except Exception as error:
            problem = str(error)
            time.sleep(2 ** attempt)
    else:
        failures.append({"url": url, "error": problem})
        with open("failures.json", "w") as file:
            json.dump(failures, file)
