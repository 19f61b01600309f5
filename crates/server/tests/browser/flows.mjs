// What people do on the dashboard, in a real browser. `node flows.mjs ADDRESS [WORD…]` runs the flows whose names have one of the words.
import { apiOf, ask, launch, pagesOf, visitOf } from "./browser.mjs";
import { acts } from "./flows/acts.mjs";
import { alerts } from "./flows/alerts.mjs";
import { freshness } from "./flows/fresh.mjs";
import { live } from "./flows/live.mjs";
import { looks } from "./flows/looks.mjs";
import { places } from "./flows/places.mjs";
import { tries } from "./flows/tries.mjs";

const [base, ...only] = process.argv.slice(2);
const browser = await launch();

// A server with its letters, and somebody who looks at it.
export async function world(base, token) {
  const api = apiOf(base, token);
  const { cause, pages } = await pagesOf(api);
  const letters = (await api(`/letters?cause=${cause}&limit=1000`)).items;
  const report = (n, message = "SelectorNotFound: .price-tag-main (field price)") =>
    api("/letters", { pipeline: "shop", input: { url: `https://shop.example/new/${n}` }, message });
  const visit = (options, allowed) => visitOf(browser, base, options, allowed);
  return { base, api, cause, pages, letters, report, visit, open: async (...words) => world(`http://${await ask(`open ${words.join(" ")}`)}`) };
}

const here = await world(base);
// Names, reasons and addresses as long as people make them: every page has to hold them.
const LONG = { pipeline: `long-${"x".repeat(59)}`, target: `${"long-name-of-a-host.".repeat(6)}example`, why: "because of what they said ".repeat(12) + "y".repeat(120) };
await here.api("/letters", { pipeline: LONG.pipeline, input: { url: `https://${LONG.target}/${"z".repeat(300)}` }, message: `ValueError: ${LONG.why}` });
await here.api("/breakers/hold", LONG);
await here.api(`/pipelines/${LONG.pipeline}/pause`, { why: LONG.why });
here.pages["pipeline-long"] = `/pipelines/${LONG.pipeline}`;
here.pages["letter-long"] = `/letters/${(await here.api(`/letters?pipeline=${LONG.pipeline}`)).items[0].id}`;
let failed = 0;
for (const [name, flow] of Object.entries({ ...looks, ...live, ...freshness, ...acts, ...alerts, ...places, ...tries })) {
  if (only.length && !only.some((word) => name.includes(word))) continue;
  const begun = Date.now();
  try {
    await flow(here);
    console.log(`ok   ${name} (${Date.now() - begun} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n${error.stack ?? error}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
