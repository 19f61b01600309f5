const fs = require("node:fs");
const axios = require("axios");

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function scrape(url) {
  const { data } = await axios.get(url, { timeout: 10_000 });
  const [, title] = data.match(/<h1 class="title">(.*?)<\/h1>/);
  const [, price] = data.match(/<span class="price-tag-main">([\d.]+)<\/span>/);
  return { url, title, price: Number(price) };
}

async function main() {
  const failures = [];
  for (const url of fs.readFileSync("urls.txt", "utf8").split(/\s+/).filter(Boolean)) {
    for (let attempt = 0; ; attempt++) {
      try {
        console.log(JSON.stringify(await scrape(url)));
        break;
      } catch (error) {
        if (attempt === 3) {
          failures.push({ url, error: error.message });
          fs.writeFileSync("failures.json", JSON.stringify(failures));
          break;
        }
        await sleep(1000 * 2 ** attempt);
      }
    }
  }
}

main();
