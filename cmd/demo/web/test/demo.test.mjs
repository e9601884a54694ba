// Three people use the demo at the same time, in Chromium. The Go test starts the demo, and passes its address.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const base = process.env.DEMO_URL;
const problems = []; // errors and warnings of all pages, and requests to other hosts
let browser;
let amy, bob, cid;

/** openPage opens the demo in a browser of its own, or in that of a closed page, as "Reopen closed tab" does. */
async function openPage(context, stored = {}) {
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("request", (request) => request.url().startsWith(base + "/") || problems.push(`asked ${request.url()}`));
  page.on(
    "websocket",
    (socket) => socket.url().startsWith(base.replace("http", "ws") + "/") || problems.push(`asked ${socket.url()}`),
  );
  await page.addInitScript(
    (entries) => sessionStorage.length || entries.forEach(([key, value]) => sessionStorage.setItem(key, value)),
    Object.entries(stored),
  );
  return page;
}

async function comeAsGuest(nickname, options) {
  const page = await openPage(await browser.newContext(options));
  await page.goto(base + "/");
  await page.getByLabel("Your nickname").fill(nickname);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Dots and boxes" }).waitFor();
  return page;
}

const go = (page, to) => page.getByRole("navigation").getByRole("link", { name: to }).click();
const onAll = (check) => Promise.all([amy, bob, cid].map(check));

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });
});
after(() => browser?.close());

test("guests come in, a third person registers, and they chat", async () => {
  [amy, bob] = await Promise.all([comeAsGuest("Amy"), comeAsGuest("Bob", { colorScheme: "dark" })]);
  cid = await openPage(await browser.newContext({ viewport: { width: 390, height: 800 } }));
  await cid.goto(base + "/");
  await cid.getByText("With a name and a password").click();
  await cid.getByLabel("Name", { exact: true }).fill("Cid");
  await cid.getByLabel("Password").fill("correct horse");
  await cid.getByRole("button", { name: "Register" }).click();
  await onAll((page) => page.getByText("3 here").waitFor());
  await bob.getByLabel("Message").fill("A game?");
  await bob.keyboard.press("Enter");
  await onAll((page) => page.getByRole("log").getByText("Bob A game?").waitFor());
});

const line = (page, name) => page.locator(`[data-line="${name}"]`);
const drawn = (page) => page.locator(".line.drawn").count();

/** onTurn returns the page whose turn it is. */
const onTurn = () =>
  Promise.any(
    [amy, bob, cid].map(async (page) => {
      await page.locator(".turn").getByText("Your turn").waitFor();
      return page;
    }),
  );

/** draw draws a line, and waits until all see it. */
async function draw(name) {
  await line(await onTurn(), name).dispatchEvent("click");
  await onAll((page) => page.locator(`[data-line="${name}"].drawn`).waitFor({ state: "attached" }));
}

test("they meet in a room and play in turn", async () => {
  await amy.getByLabel("Size").selectOption("2");
  await amy.getByLabel("Name of the room").fill("The round table");
  await amy.getByRole("button", { name: "Make a room" }).click();
  for (const page of [bob, cid]) {
    const link = page.getByRole("listitem").filter({ hasText: "The round table" }).getByRole("link", { name: "Join" });
    const heading = page.getByRole("heading", { name: "The round table" });
    // A change of the lobby may replace the link during the click, which then does nothing.
    for (let clicks = 0; clicks < 10 && !(await heading.isVisible()); clicks++) {
      await link.click({ timeout: 1000 }).catch(() => {});
      await heading.waitFor({ timeout: 2000 }).catch(() => {});
    }
    await heading.waitFor();
  }
  await onAll((page) => page.locator(".players li").nth(2).waitFor());
  await draw("h/0/0"); // Amy
  await amy.getByText("Bob draws.").waitFor();
  await line(amy, "h/0/1").dispatchEvent("click");
  await amy.getByText("It is not your turn.").waitFor();
  // Bob draws two lines at the same moment: the store refuses the second one.
  await bob.evaluate(() =>
    ["h/1/0", "h/1/1"].forEach((name) =>
      document.querySelector(`[data-line="${name}"]`).dispatchEvent(new Event("click")),
    ),
  );
  await bob.getByText("It is not your turn.").waitFor();
  await cid.locator(".turn").getByText("Your turn").waitFor();
  assert.equal(await drawn(cid), 2);
});

test("a page that was killed comes back to its seat", async () => {
  const seat = await bob.locator(".players li").filter({ hasText: "you" }).locator(".dot").getAttribute("class");
  const stored = await bob.evaluate(() => ({ ...sessionStorage }));
  await bob.close();
  await amy.getByText(/away, the seat is kept for \d+ s/).waitFor();
  await draw2(cid, "h/2/0");
  bob = await openPage(bob.context(), stored);
  await bob.goto(base + "/"); // the page finds the room by itself
  await bob.getByRole("heading", { name: "The round table" }).waitFor();
  await onAll((page) => page.getByText("away, the seat").waitFor({ state: "detached" }));
  assert.equal(await bob.locator(".players li").count(), 3);
  assert.equal(await bob.locator(".players li").filter({ hasText: "you" }).locator(".dot").getAttribute("class"), seat);
  assert.equal(await drawn(bob), 3);
});

/** draw2 draws a line while the third page is closed. */
async function draw2(page, name) {
  await line(page, name).dispatchEvent("click");
  await page.locator(`[data-line="${name}"].drawn`).waitFor({ state: "attached" });
}

test("the boxes of the game count on the leaderboard of all", async () => {
  const left = await amy
    .locator(".line:not(.drawn)")
    .evaluateAll((lines) => lines.map((element) => element.dataset.line));
  assert.equal(left.length, 12 - 3);
  for (const name of left) await draw(name);
  await onAll((page) => page.getByText(/win!|wins\.|A draw/).waitFor());
  const points = (await amy.locator(".players li > b").allTextContents()).map(Number);
  assert.equal(
    points.reduce((a, b) => a + b),
    4,
  );
  await onAll((page) => go(page, "Lobby"));
  const boards = await onAll(async (page) => {
    await page.locator(".board li b").nth(2).waitFor();
    return page.locator(".board li").allTextContents();
  });
  assert.deepEqual(boards[0], boards[1]);
  assert.deepEqual(boards[0], boards[2]);
  const scores = (await amy.locator(".board li b").allTextContents()).map(Number);
  assert.deepEqual(
    scores,
    points.sort((a, b) => b - a),
  ); // each box counts once, although three pages have asked
});

test("two want the same seat: one gets it and buys it, the other one sees why not", async () => {
  await onAll((page) => go(page, "Hall"));
  await cid.locator('[data-seat="A1"]').focus();
  for (const key of ["ArrowRight", "ArrowDown", "Enter"]) await cid.keyboard.press(key);
  await cid.locator('[data-seat="B2"].chosen').waitFor();
  await Promise.all(
    [amy, bob].map(async (page) => {
      await page.locator('[data-seat="E6"]').click();
      await page.getByRole("button", { name: "Hold" }).waitFor();
    }),
  );
  await Promise.all([amy, bob].map((page) => page.evaluate(() => document.getElementById("hold")?.click())));
  const winner = await Promise.any(
    [amy, bob].map(async (page) => {
      await page.getByText(/E6: yours for \d+ s/).waitFor();
      return page;
    }),
  );
  const loser = winner === amy ? bob : amy;
  await loser.getByText("E6: another visitor was faster.").waitFor();
  await cid.getByRole("button", { name: "E6, held" }).waitFor();
  await winner.getByRole("button", { name: "Buy" }).click();
  await winner.getByText("E6: bought").waitFor();
  await cid.getByRole("button", { name: "E6, sold" }).waitFor();
  await loser.getByText("119 free · 0 held · 1 sold").waitFor();
});

test("the backend sells a hold only to its user", async () => {
  const code = await cid.evaluate(async () => {
    const { Switchboard } = await import("/sdk/index.js");
    const { Accounts, Holds } = await import("/sdk/kit/index.js");
    const connect = async () => {
      const session = await new Accounts(location.origin).register({ nickname: "a program" });
      return new Switchboard(location.origin + "/ws", { token: () => session.token() });
    };
    const [buyer, thief] = [await connect(), await connect()];
    const { id } = await new Holds(buyer).take("hall", { seats: ["J1"] });
    const refused = await thief.request({ buy: id }).catch((error) => error.code);
    await new Holds(buyer).release("hall", id);
    await Promise.all([buyer.close(), thief.close()]);
    return refused;
  });
  assert.equal(code, "forbidden");
});

test("avatars walk, type and talk", async () => {
  await onAll((page) => go(page, "Square"));
  await onAll((page) => page.locator(".avatar").nth(2).waitFor({ state: "attached" }));
  const place = (page) =>
    page.locator('[data-name="Amy"]').evaluate((element) => [element.style.left, element.style.top]);
  await amy.locator(".ground").click({ position: { x: 100, y: 200 } });
  await amy.keyboard.press("ArrowRight");
  const goal = await amy.waitForFunction(
    ([x]) => {
      // the click, and the step
      const { left, top } = document.querySelector('[data-name="Amy"]').style;
      return parseFloat(left) > x && parseFloat(left) < x + 8 && [left, top];
    },
    [await amy.locator(".ground").evaluate((ground) => 10_000 / ground.clientWidth + 3)],
  );
  for (const page of [bob, cid]) {
    await page.waitForFunction(
      ([left]) => document.querySelector('[data-name="Amy"]').style.left === left,
      await goal.jsonValue(),
    );
    assert.deepEqual(await place(page), await place(amy));
  }
  await bob.getByLabel("Say something").pressSequentially("Hi");
  for (const page of [amy, cid]) await page.locator('[data-name="Bob"].typing').waitFor({ state: "attached" });
  await bob.keyboard.press("Enter");
  for (const page of [amy, cid]) {
    await page.locator('[data-name="Bob"]').getByText("Hi").waitFor();
    await page.locator('[data-name="Bob"].typing').waitFor({ state: "detached" });
  }
});

test("a logout ends the login of the tab", async () => {
  await cid.getByRole("button", { name: "Log out" }).click();
  await cid.getByLabel("Your nickname").waitFor();
  await amy.locator('[data-name="Cid"].asleep').waitFor({ state: "attached" });
});

test("no page has logged an error, or asked another host", () => assert.deepEqual(problems, []));
