import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Disconnected, Options, Switchboard } from "../src/index.js";
import { FakeSocket, dialled, settle, stopClock, tick } from "./fake.js";

/** All sockets of a test, in order. */
let sockets: FakeSocket[] = [];
class Socket extends FakeSocket {
  constructor(url: string) {
    super(url);
    sockets.push(this);
  }
}

beforeEach(() => {
  stopClock();
  sockets = [];
});
afterEach(() => {
  mock.restoreAll();
  mock.timers.reset();
});

const three = ["ws://a/ws", "ws://b/ws", "ws://c/ws"];

async function start(
  urls: string | string[],
  options: Options = {},
): Promise<{ sb: Switchboard; ends: Disconnected[] }> {
  const { sb } = await dialled({ WebSocket: Socket, pingAfter: 1e9, ...options }, urls);
  const ends: Disconnected[] = [];
  sb.on("disconnected", (end) => ends.push(end));
  return { sb, ends };
}

/** Lets time pass in small steps, so that promises can follow. */
async function pass(ms: number, step = 50): Promise<void> {
  for (let t = 0; t < ms; t += step) {
    tick(Math.min(step, ms - t));
    await settle();
  }
}

const last = () => sockets.at(-1)!;

test("the first URL is a random one", async () => {
  const seen = new Set<string>();
  for (let i = 0; i < 40; i++) {
    const { sb } = await start(three);
    seen.add(last().url);
    await sb.close();
  }
  assert.equal(seen.size, 3);
});

test("the delay is drawn up to the time for which the URL has failed", async () => {
  let draw = 0.999;
  mock.method(Math, "random", () => draw);
  const { sb, ends } = await start("ws://a/ws", { backoffMin: 100, backoffMax: 1000 });
  for (draw of [0.999, 0.999, 0.999, 0.999, 0.5, 0]) {
    last().end();
    await pass(ends.at(-1)!.retryIn, 1000);
  }
  assert.deepEqual(
    ends.map(({ retryIn }) => Math.round(retryIn)),
    [400, 400, 799, 999, 550, 100],
  );
  await sb.close();
});

test("after a refusal the next URL is tried at once, and each URL has its own delay", async () => {
  const { sb, ends } = await start(three);
  for (let i = 0; i < 3; i++) {
    assert.equal(sockets.length, i + 1);
    last().end();
    await settle();
  }
  assert.deepEqual([...sockets.map((s) => s.url)].sort(), three);
  assert.deepEqual([ends[0]!.retryIn, ends[1]!.retryIn], [0, 0]);
  assert.ok(ends[2]!.retryIn > 0 && ends[2]!.retryIn <= 4000);
  assert.equal(sb.phase, "waiting");
  await pass(4000);
  assert.ok(sockets.length >= 4);
  await sb.close();
});

test("while a URL is silent another one is tried, and the first that opens gets connect", async () => {
  const { sb, ends } = await start(three);
  await pass(999);
  assert.equal(sockets.length, 1);
  await pass(1);
  assert.equal(sockets.length, 2);
  const [silent, winner] = sockets as [FakeSocket, FakeSocket];
  winner.connect();
  assert.equal(sb.phase, "connected");
  assert.ok(silent.closed);
  assert.deepEqual(ends, []);
  // The URL that was silent comes last from now on.
  winner.end();
  await pass(5000);
  assert.notEqual(sockets[2]!.url, silent.url);
  await sb.close();
});

test("a server that opens and does not answer is left after three seconds", async () => {
  const { sb, ends } = await start(three);
  last().onopen!();
  last().take("connect");
  await pass(2999);
  assert.equal(sockets.length, 1);
  await pass(1);
  assert.equal(ends[0]!.message, "no answer within 3000 ms");
  assert.equal(sockets.length, 2);
  last().connect();
  assert.equal(sb.phase, "connected");
  await sb.close();
});

test("patience grows on a slow network, up to the connect timeout", async () => {
  const { sb, ends } = await start(["ws://a/ws", "ws://b/ws"], { connectTimeout: 8000 });
  await pass(90_000);
  const waits = ends.map(({ message }) => Number(/\d+/.exec(message)![0]));
  assert.deepEqual(waits.slice(0, 2), [3000, 3000]);
  assert.deepEqual(waits.slice(-2), [8000, 8000]);
  await sb.close();
});

test("only one connect is sent at a time, with growing attempts", async () => {
  const { sb } = await start(three);
  await pass(1000);
  const [a, b] = sockets as [FakeSocket, FakeSocket];
  b.onopen!();
  assert.equal(b.take("connect").attempt, 1);
  assert.equal(a.onopen, null);
  assert.ok(a.closed);
  b.end();
  await settle();
  last().onopen!();
  assert.equal(last().take("connect").attempt, 2);
  await sb.close();
});

test("after a loss the clients of an instance spread before they go to another one", async () => {
  const { sb, ends } = await start(three);
  const first = last();
  first.connect();
  await pass(60_000);
  first.end();
  assert.ok(ends[0]!.retryIn >= 200 && ends[0]!.retryIn <= 800);
  await pass(800);
  assert.notEqual(last().url, first.url);
  await sb.close();
});

test("outages of seconds do not add up, connections of moments do", async () => {
  mock.method(Math, "random", () => 0.999);
  const { sb, ends } = await start("ws://a/ws");
  for (const [uptime, least, most] of [
    [60_000, 700, 800], // the first outage
    [5000, 700, 800], // five good seconds make up for an outage of one
    [5000, 700, 800],
    [0, 700, 800], // a broker that ends each connection
    [0, 1500, 1600],
    [0, 3100, 3200],
    [0, 3900, 4000],
    [0, 3900, 4000],
    [0, 4700, 4800],
    [0, 6300, 6500],
    [0, 8400, 8600],
    [0, 11_200, 11_400],
    [60_000, 700, 800], // a good minute
  ] as const) {
    last().connect();
    await pass(uptime, 1000);
    last().end();
    const { retryIn } = ends.at(-1)!;
    assert.ok(retryIn >= least && retryIn <= most, `${uptime} ms of uptime, then ${retryIn}`);
    await pass(retryIn, 20_000);
  }
  await sb.close();
});

test("after outages with a second of network between them, the delays are short, and grow only in a long one", async () => {
  mock.method(Math, "random", () => 0.999);
  const { sb, ends } = await start("ws://a/ws");
  for (const outage of [2500, 4600, 3400, 5700]) {
    last().connect();
    await pass(1000, 1000);
    last().end();
    for (let left = outage; left > 0;) {
      const { retryIn } = ends.at(-1)!;
      assert.ok(retryIn <= 8000, `${retryIn} ms`);
      await pass(retryIn, 1000);
      if ((left -= retryIn) > 0) last().end();
    }
  }
  for (let gone = 0; gone < 60_000; gone += ends.at(-1)!.retryIn) {
    last().end();
    await pass(ends.at(-1)!.retryIn, 1000);
  }
  assert.ok(ends.at(-1)!.retryIn > 19_000);
  await sb.close();
});

test("brokers that end each connection are tried less and less often", async () => {
  const { sb } = await start(three);
  for (let i = 0; i < 1200; i++) {
    await pass(500, 500);
    const socket = last();
    if (socket.closed) continue;
    socket.connect();
    socket.end();
  }
  assert.ok(sockets.length < 250, `${sockets.length} connects in 10 min`);
  await sb.close();
});

test("an instance stays the first after an end that is about this client", async () => {
  for (const [code, same] of [
    [4007, true],
    [4008, true],
    [1006, false],
    [4001, false],
  ] as const) {
    const { sb } = await start(three);
    const { url } = last();
    last().connect();
    last().end(code);
    await pass(800);
    assert.equal(last().url === url, same, String(code));
    await sb.close();
  }
});

test("wake forgets the delays and what hangs in a network that is gone", async () => {
  const { sb } = await start(["ws://a/ws", "ws://b/ws"]);
  await pass(2500);
  const [a, b] = sockets as [FakeSocket, FakeSocket];
  sb.wake();
  await settle();
  assert.equal(sockets.length, 3);
  assert.ok(a.closed && b.closed);
  last().connect();
  assert.equal(sb.phase, "connected");
  await sb.close();
});

test("wake during an attempt that has just begun changes nothing", async () => {
  const { sb } = await start("ws://a/ws");
  await pass(500);
  sb.wake();
  sb.wake();
  await settle();
  assert.equal(sockets.length, 1);
  assert.ok(!last().closed);
  last().connect();
  sb.wake();
  last().take("ping");
  await sb.close();
});

test("the token is fetched once while attempts overlap", async () => {
  let asked = 0;
  const { sb } = await start(three, { token: async () => `t${++asked}` });
  await pass(2500);
  assert.equal(sockets.length, 3);
  assert.equal(asked, 1);
  last().onopen!();
  assert.equal(last().take("connect").token, "t1");
  await sb.close();
  await pass(60_000, 1000);
  assert.equal(sockets.length, 3);
});

test("close ends all attempts", async () => {
  const { sb } = await start(three);
  await pass(2500);
  await sb.close();
  assert.ok(sockets.every((s) => s.closed));
  await pass(60_000, 1000);
  assert.equal(sockets.length, 3);
});

for (const silent of [false, true]) {
  test(`after outages of seconds all clients are back soon, and not at once: ${silent ? "silent" : "refused"}`, async () => {
    const clients: Switchboard[] = [];
    for (let i = 0; i < 60; i++) clients.push((await start(three)).sb);
    let up = true;
    /** What the network does with new connections. */
    const network = () => {
      for (const socket of sockets.splice(0)) {
        if (socket.closed) continue;
        if (up) socket.connect();
        else if (!silent) socket.end();
        if (up) open.add(socket);
      }
    };
    const open = new Set<FakeSocket>();
    const step = async () => {
      await pass(50);
      network();
    };
    const waits: number[] = [];
    let peak = 0;
    network();
    for (const outage of [2500, 4600, 3400, 5700]) {
      for (let t = 0; t < 4000; t += 50) await step();
      up = false;
      for (const socket of open) socket.end();
      open.clear();
      for (let t = 0; t < outage; t += 50) await step();
      up = true;
      const away = new Set(clients);
      for (let t = 0; away.size && t < 60_000; t += 100) {
        await step();
        await step();
        let back = 0;
        for (const sb of away) if (sb.phase === "connected" && away.delete(sb)) waits.push(((back += 1), t + 100));
        peak = Math.max(peak, back);
      }
    }
    waits.sort((a, b) => a - b);
    assert.equal(waits.length, 4 * clients.length);
    const [p50, p99] = [waits[waits.length >> 1]!, waits[Math.floor(waits.length * 0.99)]!];
    assert.ok(p50 <= 2000 && p99 <= 8000, `p50 ${p50} ms, p99 ${p99} ms`);
    assert.ok(peak <= clients.length / 2, `${peak} of ${clients.length} at once`);
    for (const sb of clients) await sb.close();
  });
}
