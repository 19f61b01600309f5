const fs = require("node:fs");
const axios = require("axios");

function fail(exitCode, failure) {
  console.log(JSON.stringify({ failure }));
  process.exitCode = exitCode;
}

async function main() {
  const { url } = JSON.parse(fs.readFileSync(0, "utf8")).input;
  let response;
  try {
    response = await axios.get(url, { timeout: 2000, responseType: "arraybuffer", validateStatus: null });
  } catch ({ code, name, message, stack }) {
    const badInput = code === "ERR_INVALID_URL" || code === "ERR_BAD_REQUEST"; // no retry will make it an address
    const brokenOff = code === "ERR_BAD_RESPONSE"; // what axios calls half a page
    const reason = brokenOff ? "network" : undefined; // ECONNRESET, ENOTFOUND, … speak for themselves
    return fail(badInput ? 65 : 1, { reason, code, error_type: name, message, stack, stage: "fetch" });
  }

  fs.writeFileSync(process.env.REDRIVE_PAYLOAD, response.data); // the evidence, kept if this attempt fails
  if (response.status >= 400) {
    const retry_after = response.headers["retry-after"];
    return fail(1, { http_status: response.status, message: response.statusText, retry_after, stage: "fetch" });
  }

  const page = response.data.toString();
  const title = page.match(/<h1 class="title">(.*?)<\/h1>/);
  const price = page.match(/<span class="price-tag-main">([\d.]+)<\/span>/);
  if (!title || !price) {
    const message = title ? ".price-tag-main" : "h1.title";
    return fail(1, { reason: "schema_validation", code: "SelectorNotFound", message, http_status: 200, stage: "extract" });
  }
  console.log(JSON.stringify({ url, title: title[1], price: Number(price[1]) }));
}

main();
