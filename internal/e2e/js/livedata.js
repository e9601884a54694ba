// Runs the sample of docs/guides/live-data.md: its backend changes orders, while pages come, lose
// their connections and show them. The argument is JSON: the URL of the broker, that of the orders,
// and the module of the page. It prints a line of JSON at the end.
import { pathToFileURL } from "node:url";
import WebSocket from "ws";
import { Switchboard } from "../../../client/js/dist/index.js";

const { broker, orders, module } = JSON.parse(process.argv[2]);
const { liveOrders } = await import(pathToFileURL(module));
const pages = 24;
const changes = 600;

/** What the pages must show in the end: the version of each order. */
const want = new Map();
let changed = () => {};

class Page {
  shown = new Map();

  constructor(i) {
    const page = this;
    class Socket extends WebSocket {
      constructor(url) {
        super(url);
        page.socket = this;
      }
    }
    this.sb = new Switchboard(broker, { WebSocket: Socket, client: `page-${i}`, backoffMax: 500 });
    this.sb.on("disconnected", () => {});
    liveOrders(this.sb, (shown) => {
      this.shown = shown;
      changed();
    });
  }

  get missing() {
    return [...want].filter(([id, version]) => this.shown.get(id)?.version !== version);
  }
}

async function change(i) {
  const id = `order-${i % 400}`;
  want.set(id, (want.get(id) ?? 0) + 1);
  const answer = await fetch(orders, { method: "POST", body: JSON.stringify({ id, status: i }) });
  if (answer.status !== 204) throw new Error(await answer.text());
}

const all = [];
for (let i = 0; i < changes; i += 4) {
  await Promise.all([i, i + 1, i + 2, i + 3].map(change));
  if (i % 20 === 0 && all.length < pages) all.push(new Page(all.length));
  if (i % 12 === 0) all[(i * 7) % all.length].socket?.terminate();
}
while (all.some((page) => page.missing.length)) {
  const timeout = setTimeout(() => {
    console.log(JSON.stringify({ missing: all.map((page) => page.missing) }));
    process.exit(1);
  }, 30_000);
  await new Promise((resolve) => (changed = resolve));
  clearTimeout(timeout);
}
await Promise.all(all.map((page) => page.sb.close()));
console.log(JSON.stringify({ pages: all.length }));
