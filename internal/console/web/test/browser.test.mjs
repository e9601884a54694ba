// Tests of the console in Chromium, against a broker that the Go test has started. The Go test
// passes the
// address and the keys in the environment.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const { BROKER_HTTP, BROKER_TCP, BACKEND, KEY_ADMIN, KEY_READ, KEY_PUSH } = process.env;
const base = `http://${BROKER_HTTP}`;
const hostile = `<img/src=x:y/onerror=document.title="hacked">`; // a valid name: no space, no brace

/** split splits host:port. */
const split = (address) => ({ host: address.replace(/:\d+$/, ""), port: Number(address.replace(/^.*:/, "")) });

/** accepts says whether the backend accepts events. It refuses them for good otherwise. */
let accepts = true;
const backend = createServer((request, response) => {
  request.resume().on("end", () => response.writeHead(accepts ? 200 : 410).end());
});

const clients = [];
let browser;
before(async () => {
  const { host, port } = split(BACKEND);
  await new Promise((resolve) => backend.listen(port, host, resolve));
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });
});
after(async () => {
  for (const client of clients) client.destroy(); // those of tests that failed
  backend.close();
  backend.closeAllConnections();
  await browser?.close();
});

/** call calls the API with the key of the admin. */
async function call(method, path, body) {
  const headers = { Authorization: `Bearer ${KEY_ADMIN}`, "Content-Type": "application/json" };
  const response = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`);
  return response.json();
}

/** openClient connects a client over TCP. ended resolves when the broker closes the connection. */
async function openClient({ user, client, channels, info }) {
  const socket = connect(split(BROKER_TCP));
  clients.push(socket);
  const send = (message) => socket.write(JSON.stringify(message) + "\n");
  const ended = new Promise((resolve) => socket.on("close", resolve));
  const lines = createInterface({ input: socket });
  const subscribed = new Promise((resolve) => {
    let waiting = channels.length + 1;
    lines.on("line", (line) => {
      const message = JSON.parse(line);
      if (message.type === "ping") send({ type: "pong" });
      if (["connected", "subscribed"].includes(message.type) && --waiting === 0) resolve();
    });
  });
  send({ type: "connect", user, client, info });
  for (const channel of channels) send({ type: "subscribe", channel });
  await subscribed;
  return { ended, send, close: () => socket.destroy() };
}

/**
 * inPage runs a test in a new page. It fails if the page logs an error or asks another host. refused
 * matches the URLs of calls that may fail.
 */
async function inPage(run, { key, width = 1280, colorScheme = "light", refused } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    // The browser logs every 401, and other refusals.
    const refusedLogin = message.text().includes("401") && message.location().url.endsWith("/v1/self");
    const expected = refusedLogin || refused?.test(message.location().url);
    if (["error", "warning"].includes(message.type()) && !expected) problems.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(base + "/")) problems.push(`asked ${request.url()}`);
  });
  if (key) await page.addInitScript((k) => sessionStorage.setItem("switchboard-key", k), key);
  try {
    await run(page);
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

const openPage = async (page, route) => {
  await page.goto(`${base}/console/#/${route}`);
  await page.locator("h1").waitFor();
};

test("a person logs in at /, and a wrong key is refused", () =>
  inPage(async (page) => {
    await page.goto(base + "/");
    await page.waitForURL(base + "/console/");
    await page.getByLabel("API key").fill("swb_wrong");
    await page.keyboard.press("Enter");
    await page.getByText("The broker does not know this key.").waitFor();
    await page.getByLabel("API key").fill(KEY_READ);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await page.getByText("healthy").waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor(); // the key stays in the tab
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("API key").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  }));

test("a key that may only read is offered nothing else", async () => {
  const client = await openClient({ user: "amy", client: "phone", channels: ["news"] });
  await inPage(
    async (page) => {
      await openPage(page, "channels/news");
      await page.getByRole("link", { name: "amy/phone" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Push" }).count(), 0);
      await openPage(page, "clients/amy%2Fphone");
      await page.getByText("online").waitFor();
      assert.equal(await page.getByRole("button", { name: /Disconnect|Push/ }).count(), 0);
      assert.equal(await page.getByRole("navigation").getByRole("link", { name: "Accounts" }).count(), 0);
      await openPage(page, "accounts");
      await page.getByText("This page needs a key with the scope admin.").waitFor();
    },
    { key: KEY_READ },
  );
  await inPage(
    async (page) => {
      await page.goto(`${base}/console/`);
      await page.getByRole("heading", { name: "First push", level: 1 }).waitFor();
      assert.equal(await page.getByRole("navigation").getByRole("link").count(), 1);
    },
    { key: KEY_PUSH },
  );
  client.close();
});

test("a push from the console appears in the tail", () =>
  inPage(
    async (page) => {
      await openPage(page, "channels/tail:1");
      await page.getByText("No message is stored.").waitFor();
      await page.getByLabel("Data (JSON)").fill('{"n": 12345678901234567890}');
      await page.getByRole("button", { name: "Push" }).click();
      await page.getByText(/^Stored, id/).waitFor();
      await page.getByRole("log").getByText('{"n":12345678901234567890}').waitFor();
      await call("POST", "/v1/push", { channel: "tail:1", data: "from the backend", set: { turn: "amy" } });
      await page.getByRole("log").getByText("from the backend").waitFor();
      await page.getByRole("table", { name: "Fields" }).getByText("turn").waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await call("POST", "/v1/push", { channel: "tail:1", data: "while it is paused" });
      await page.getByText("1 new message", { exact: true }).waitFor();
      assert.equal(await page.getByRole("log").getByText("while it is paused").count(), 0);
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByRole("log").getByText("while it is paused").waitFor();
      await page.getByLabel("Data (JSON)").fill("{");
      assert.ok(await page.getByRole("button", { name: "Push" }).isDisabled());
    },
    { key: KEY_ADMIN },
  ));

test("the tail shows authors, excluded clients and erased messages", async () => {
  const client = await openClient({ user: "amy", client: "phone", channels: [] });
  await inPage(
    async (page) => {
      await openPage(page, "channels/tail:2");
      const entries = page.getByRole("log").locator("details");
      client.send({ type: "publish", channel: "tail:2", data: "from a client" });
      const published = entries.filter({ hasText: "from a client" });
      await published.getByText("by amy/phone", { exact: true }).waitFor();
      await published.locator("summary").click();
      assert.equal(await published.getByText("Changes of the state").count(), 0);
      await page.getByLabel("Data (JSON)").fill('"not for amy"');
      await page.getByLabel("Not to (client)").fill("amy/phone");
      await page.getByRole("button", { name: "Push" }).click();
      const pushed = entries.filter({ hasText: "not for amy" });
      await pushed.locator("summary").click();
      await pushed.getByText("not to amy/phone").waitFor();
      const { results } = await call("POST", "/v1/push", { channel: "tail:2", data: "a secret" });
      await call("POST", "/v1/erase", { channel: "tail:2", id: results[0].id });
      await openPage(page, "channels/tail:3");
      await openPage(page, "channels/tail:2"); // reads the history again
      await entries.getByText("erased", { exact: true }).waitFor();
      assert.equal(await page.getByText("a secret").count(), 0);
      await page.getByRole("button", { name: "Pause" }).click(); // what is erased leaves a paused tail, too
      await published.locator("summary").click();
      await page.getByRole("button", { name: "Erase" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Erase" }).click();
      await published.waitFor({ state: "detached" });
      assert.equal(await entries.getByText("erased", { exact: true }).count(), 2);
    },
    { key: KEY_ADMIN },
  );
  client.close();
});

test("a device is found, its queue is shown, and it is disconnected", async () => {
  const client = await openClient({ user: "bob", client: "laptop", channels: ["news"] });
  await call("POST", "/v1/push", { client: "bob/laptop", data: { badge: 3 } });
  await inPage(
    async (page) => {
      await openPage(page, "users");
      await page.getByRole("link", { name: "bob", exact: true }).click();
      await page.getByRole("link", { name: "laptop" }).click();
      await page.getByText('{"badge":3}').waitFor();
      await page.getByRole("button", { name: "Disconnect" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Disconnect" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Disconnect" }).click();
      await page.getByText("Disconnected.").waitFor();
      await page.getByText("offline").waitFor();
      await client.ended;
    },
    { key: KEY_ADMIN },
  );
});

test("tokens of a user are revoked, where clients need tokens", () =>
  inPage(
    async (page) => {
      const revoked = Date.UTC(2026, 10, 23);
      const self = await call("GET", "/v1/self");
      await page.route("**/v1/users/carl", (route) =>
        route.fulfill({ json: { user: "carl", online: false, clients: [], revoked } }),
      );
      let body;
      await page.route("**/v1/users/carl/revoke", (route) => {
        body = route.request().postData();
        return route.fulfill({ json: { before: revoked, until: revoked, disconnected: 2 } });
      });
      await openPage(page, "users/carl");
      await page.getByText("The store knows no device").waitFor();
      assert.equal(await page.getByRole("button", { name: "Revoke tokens" }).count(), 0);
      await page.route("**/v1/self", (route) => route.fulfill({ json: { ...self, tokens: true } }));
      await page.reload();
      await page.getByRole("button", { name: "Revoke tokens" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Revoke tokens" }).click();
      await page.getByText("2 disconnected.").waitFor();
      await page.getByText("Tokens that were issued before").waitFor();
      assert.equal(body, "{}");
    },
    { key: KEY_ADMIN },
  ));

test("hostile names and payloads stay text", async () => {
  const client = await openClient({
    user: hostile,
    client: "x",
    channels: [hostile],
    info: { name: `</td>${hostile}` },
  });
  await call("POST", "/v1/push", { channel: hostile, data: { html: hostile, [hostile]: `</script>${hostile}` } });
  await call("PUT", "/v1/holds/hostile", { seats: ["A1..A3"], data: hostile });
  await inPage(
    async (page) => {
      for (const route of [
        "channels",
        "users",
        `channels/${encodeURIComponent(hostile)}`,
        `users/${encodeURIComponent(hostile)}`,
        `clients/${encodeURIComponent(hostile + "/x")}`,
        "holds/hostile",
      ]) {
        await openPage(page, route);
        await page.getByText("document.title=").first().waitFor();
        assert.equal(await page.locator("main img, main script, main iframe").count(), 0, route);
        assert.notEqual(await page.title(), "hacked");
      }
    },
    { key: KEY_ADMIN },
  );
  client.close();
});

test("names of members of every object are names like others", async () => {
  const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"];
  for (const name of names) {
    const set = JSON.parse(`{${JSON.stringify(name)}: 1}`); // a literal would set the prototype
    await call("POST", "/v1/push", { channel: name, data: 1, set });
  }
  await inPage(
    async (page) => {
      for (const name of names) {
        await openPage(page, name);
        await page.getByText("This console has no such page.").waitFor();
        assert.equal(await page.locator("nav [aria-current]").count(), 0);
        await openPage(page, `${name}/x`);
        await page.getByText("This console has no such page.").waitFor();
        await openPage(page, `channels/${name}`);
        await page.getByRole("heading", { name, level: 1 }).waitFor();
        await page.getByRole("rowheader", { name }).waitFor(); // its field
        for (const route of ["users", "clients", "rooms", "holds", "boards", "accounts", "scenes"]) {
          await openPage(page, `${route}/${name}`);
          await page.getByRole("heading", { name, level: 1 }).waitFor();
        }
      }
    },
    { key: KEY_ADMIN, refused: /\/v1\// },
  );
});

/**
 * overflowing returns the elements that are wider than the window. Tables may scroll in their frames,
 * but not because of a name.
 */
const overflowing = (page) =>
  page.evaluate(() => {
    const scrolls = "pre, select, .tail, .chart, .visually-hidden, .table-frame > table";
    const outside = [...document.querySelectorAll("body *")].filter((e) => !e.closest(scrolls));
    const wide = outside.filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
    const tables = [...document.querySelectorAll("table")].filter((e) => e.offsetWidth > Math.max(560, innerWidth));
    return [...wide, ...tables].map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 30)}`);
  });

test("long names wrap", async () => {
  const long = (start, n) => start + "x".repeat(n - start.length);
  const [channel, user, device, name] = [long("c-", 200), long("u-", 100), long("d-", 100), long("n-", 60)];
  const client = await openClient({ user, client: device, channels: [channel], info: { [name]: name } });
  const [room, resource, board] = [long("r-", 60), long("h-", 60), long("b-", 60)];
  await call("POST", "/v1/push", { channel, data: { [channel]: channel }, set: { [long("f-", 100)]: channel } });
  await call("POST", "/v1/rooms", { id: room, mode: "battle", name, owner: user });
  await call("PUT", `/v1/holds/${resource}`, { seats: [long("s-", 30)] });
  await call("POST", `/v1/holds/${resource}/holds`, { id: long("o-", 48), user, seats: [long("s-", 30)] });
  await call("POST", `/v1/boards/${board}/scores`, { player: user, score: 1 });
  const { account } = await call("POST", "/v1/accounts", { name: long("a-", 60), password: "correct horse" });
  await call("POST", "/v1/scenes", { id: long("p-", 48), world: long("w-", 30), name });
  const id = encodeURIComponent(`${user}/${device}`);
  const pages = {
    channels: channel,
    [`channels/${channel}`]: user,
    users: user,
    [`users/${user}`]: device,
    [`clients/${id}`]: channel,
    rooms: name,
    [`rooms/${room}`]: user,
    holds: resource,
    [`holds/${resource}`]: user,
    boards: board,
    [`boards/${board}`]: user,
    accounts: long("a-", 60),
    [`accounts/${account.id}`]: long("a-", 60),
    [`scenes/${long("p-", 48)}`]: name,
    [long("page-", 200)]: "This console has no such page.",
  };
  for (const width of [390, 1280]) {
    await inPage(
      async (page) => {
        for (const [route, text] of Object.entries(pages)) {
          await openPage(page, route);
          await page.getByText(text).first().waitFor();
          assert.deepEqual(await overflowing(page), [], `${route.slice(0, 12)} at ${width}`);
        }
        await openPage(page, `clients/${id}`);
        await page.getByRole("button", { name: "Disconnect" }).click();
        await page.getByRole("dialog").getByText(user).waitFor();
        assert.deepEqual(await overflowing(page), [], `a dialog at ${width}`);
      },
      { key: KEY_ADMIN, width },
    );
  }
  client.close();
});

test("the keyboard reaches and follows the main menu", () =>
  inPage(
    async (page) => {
      await openPage(page, "overview");
      await page.evaluate(() => {
        document.body.tabIndex = -1;
        document.body.focus();
      }); // as after opening the page
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
      const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
      for (const name of ["Switchboard", "Overview", "Channels"]) {
        await page.keyboard.press("Tab");
        assert.equal(await focused(), name);
        assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
      }
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Channels", level: 1 }).waitFor();
      assert.equal(await focused(), "Channels"); // the heading, for screen readers
      await page.getByRole("link", { name: "Channels", exact: true, includeHidden: false }).first().focus();
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-current")), "page");
    },
    { key: KEY_ADMIN },
  ));

test("the axes of graphs have labels, each once, and none over another", async () => {
  const cases = [
    { connections: 1, append: [0.0009, 0.011], drain: [0.0006, 0.0079] },
    { connections: 2, append: [0.00002, 2.5], drain: [0.0011, 0.0012] },
    { connections: 1234, append: [0.01, 0.1], drain: [0.00009, 0.3] },
  ];
  for (const { connections, append, drain } of cases) {
    await inPage(
      async (page) => {
        await page.route("**/v1/stats", async (route) => {
          const response = await route.fetch();
          const stats = await response.json();
          const latency = ([p50, p99]) => ({ p50, p99 });
          Object.assign(stats.servers[0], { connections, append: latency(append), drain: latency(drain) });
          await route.fulfill({ response, json: stats });
        });
        await page.addInitScript(recordLabels);
        await openPage(page, "overview");
        await page.waitForFunction(() => window.labels?.().filter((list) => list.length > 4).length >= 3);
        for (const list of await page.evaluate(() => window.labels())) {
          const texts = list.map((l) => l.text);
          assert.equal(texts.includes("–"), false, texts.join(" "));
          assert.equal(new Set(texts).size, texts.length, texts.join(" "));
          for (const [i, a] of list.entries()) {
            for (const b of list.slice(i + 1)) {
              const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
              assert.ok(apart, `${a.text} is over ${b.text}`);
            }
          }
        }
      },
      { key: KEY_ADMIN },
    );
  }
});

/** recordLabels makes window.labels return the texts of each canvas, with their places. */
function recordLabels() {
  const drawn = new Map();
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...args) {
    drawn.set(this.canvas, []);
    return clearRect.apply(this, args);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const m = this.measureText(text);
    const at = this.getTransform().transformPoint({ x, y });
    drawn.get(this.canvas)?.push({
      text,
      left: at.x - m.actualBoundingBoxLeft,
      right: at.x + m.actualBoundingBoxRight,
      top: at.y - m.actualBoundingBoxAscent,
      bottom: at.y + m.actualBoundingBoxDescent,
    });
    return fillText.call(this, text, x, y);
  };
  window.labels = () => [...drawn].filter(([canvas]) => canvas.isConnected).map(([, list]) => list);
}

test("every page fits a phone, in both color schemes", async () => {
  await call("PUT", "/v1/holds/play-7", { seats: ["A1..A40", "B1..B40", "box-left"] });
  await call("POST", "/v1/holds/play-7/holds", { id: "order-1", user: "bob", seats: ["A1", "A2"] });
  await call("POST", "/v1/holds/play-7/sales", { id: "order-2", user: "amy", seats: ["B7"] });
  await call("POST", "/v1/rooms", { id: "battle:7", mode: "battle", name: "Epic Battle Arena", owner: "amy" });
  await call("POST", "/v1/boards/chess/scores", { player: "amy", score: 1500 });
  await call("POST", "/v1/accounts", { name: "amy@example.com", password: "correct horse" });
  await call("POST", "/v1/scenes", { id: "town", world: "earth", name: "Town" });
  const pages = {
    overview: "Connections",
    channels: "Search channels",
    "channels/news": "Messages",
    users: "online",
    "users/amy": "Devices",
    webhooks: "Your backend accepts the events",
    access: "Question",
    start: "Connect a client",
    rooms: "Epic Battle Arena",
    "rooms/battle%3A7": "Members",
    holds: "play-7",
    "holds/play-7": "order-2",
    boards: "chess",
    "boards/chess": "1,500",
    accounts: "amy@example.com",
    scenes: "Town",
    "scenes/town": "Avatars",
    nowhere: "This console has no such page.",
  };
  for (const colorScheme of ["light", "dark"]) {
    await inPage(
      async (page) => {
        for (const [route, text] of Object.entries(pages)) {
          await openPage(page, route);
          await page.getByText(text).or(page.getByLabel(text)).first().waitFor();
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, route);
        }
        await page.getByRole("button", { name: "Menu" }).click();
        await page.getByRole("link", { name: "Channels", exact: true }).click();
        await page.getByRole("heading", { name: "Channels", level: 1 }).waitFor();
      },
      { key: KEY_ADMIN, width: 390, colorScheme },
    );
  }
});

test("a refused tail says why, and reads again when asked to", () =>
  inPage(
    async (page) => {
      const error = { code: "forbidden", message: "The namespace has no history." };
      await page.route("**/history?*", (route) => route.fulfill({ status: 403, json: { error } }));
      await openPage(page, "channels/refused");
      const tail = page.locator(".card").filter({ hasText: "Messages" });
      await tail.getByText(error.message).waitFor();
      await page.unroute("**/history?*");
      await tail.getByRole("button", { name: "Try again" }).click();
      await tail.getByText("No message is stored.").waitFor();
      assert.equal(await tail.getByText(error.message).count(), 0);
    },
    { key: KEY_READ, refused: /\/history\?/ },
  ));

test("the seat map follows the seats", () =>
  inPage(
    async (page) => {
      await call("PUT", "/v1/holds/live", { seats: ["A1..A4"] });
      await openPage(page, "holds/live");
      await page.getByTitle("A2: free").waitFor();
      await call("POST", "/v1/holds/live/holds", { id: "order-9", user: "bob", seats: ["A2"] });
      await page.getByTitle("A2: held").waitFor();
      await call("POST", "/v1/holds/live/holds/order-9/confirm");
      await page.getByTitle("A2: sold").waitFor();
    },
    { key: KEY_ADMIN },
  ));

test("a check names the rule", () =>
  inPage(
    async (page) => {
      await openPage(page, "access");
      await page.getByLabel("User", { exact: true }).fill("amy");
      await page.getByLabel("Channel").fill("news");
      await page.getByRole("button", { name: "Check" }).click();
      await page.getByRole("table", { name: "Rights" }).getByText("subscribe", { exact: true }).waitFor();
    },
    { key: KEY_READ },
  ));

test("one dead letter is sent again, and one is dropped; the overview knows them", async () => {
  accepts = false;
  const clients = [];
  for (const user of ["eve", "finn"]) clients.push(await openClient({ user, client: "phone", channels: [] }));
  await inPage(
    async (page) => {
      await openPage(page, "webhooks");
      await page.getByText("user_online finn").click();
      await page.getByText("410").first().waitFor(); // the last answer
      await page.getByRole("button", { name: "Drop", exact: true }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Drop" }).click();
      await page.getByText("user_online finn").waitFor({ state: "detached" });
      await openPage(page, "");
      await page.getByText("dead_letters").waitFor();
      accepts = true;
      await openPage(page, "webhooks");
      await page.getByText("user_online eve").click();
      await page.getByRole("button", { name: "Send again" }).click();
      await page.getByText("user_online eve").waitFor({ state: "detached" });
    },
    { key: KEY_ADMIN },
  );
  for (const client of clients) client.close();
});

test("dead letters are shown and sent again", async () => {
  accepts = false;
  const client = await openClient({ user: "dora", client: "phone", channels: [] });
  await inPage(
    async (page) => {
      await openPage(page, "webhooks");
      await page.getByText("user_online dora").click();
      await page.getByText("Your backend answered 410.").waitFor();
      accepts = true;
      await page.getByRole("button", { name: "Retry dead letters" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Retry dead letters" }).click();
      await page.getByText(/wait again|waits again/).waitFor();
      await page.getByText("No event is dead.").waitFor();
    },
    { key: KEY_ADMIN },
  );
  client.close();
});
