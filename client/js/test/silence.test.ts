import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { SignedOutError, Switchboard } from "../src/index.js";
import { Accounts, Room } from "../src/kit/index.js";
import { Backend } from "../src/server/index.js";
import { FakeSocket, settle, stopClock, tick } from "./fake.js";

let warnings: string[] = [];
beforeEach(() => {
  stopClock();
  warnings = [];
  mock.method(console, "warn", (text: string) => void warnings.push(text));
});
afterEach(() => {
  mock.restoreAll();
  mock.timers.reset();
});

const options = { WebSocket: FakeSocket };

async function start(more: object = {}, urls: string | string[] = "ws://a/ws"): Promise<Switchboard> {
  const sb = new Switchboard(urls, { ...options, ...more });
  await settle();
  return sb;
}

test("a URL that cannot be right throws", () => {
  for (const bad of [
    undefined,
    null,
    "",
    "not a url",
    [],
    [""],
    ["ws://a", "b"],
    7,
    {},
    "tcp://a:7070",
    "ws://",
    "/ws",
    "ws://a b/ws",
    "ws://a/ws#x",
  ]) {
    const expected = { name: "TypeError", message: /is no URL of a broker, such as wss:\/\// };
    assert.throws(() => new Switchboard(bad as never, options), expected, String(bad));
    assert.throws(() => new Backend(bad as never), expected, String(bad));
    assert.throws(() => new Accounts(bad as never), expected, String(bad));
  }
});

test("a URL has the path of the broker, unless it has another one", async () => {
  for (const [given, used] of [
    ["ws://a", "ws://a/ws"],
    ["wss://a/", "wss://a/ws"],
    ["https://a:8080?x=1", "wss://a:8080/ws?x=1"],
    ["HTTP://a/", "ws://a/ws"],
    ["ws://a/push", "ws://a/push"],
    ["ws://a/b/ws?x", "ws://a/b/ws?x"],
    [new URL("http://a"), "ws://a/ws"],
  ] as const) {
    const sb = await start({}, given as string);
    assert.equal(FakeSocket.last.url, used);
    await sb.close();
  }
});

test("a runtime without WebSocket throws, in the constructor or in connect", async () => {
  const globals = globalThis as { WebSocket?: unknown };
  const before = globals.WebSocket;
  delete globals.WebSocket;
  try {
    const expected = { name: "TypeError", message: /no WebSocket.* package ws / };
    assert.throws(() => new Switchboard("ws://a/ws"), expected);
    assert.throws(() => new Switchboard("ws://a/ws", { WebSocket: "ws" as never }), expected);
    const rendered = new Switchboard("ws://a/ws", { autoConnect: false }); // on a server, for a page
    assert.throws(() => rendered.connect(), expected);
  } finally {
    if (before) globals.WebSocket = before;
  }
});

test("options and positions that cannot be right throw", async () => {
  assert.throws(() => new Switchboard("ws://a", { ...options, info: { n: 1n } }), { code: "bad_request" });
  for (const token of [7, true, {}, Promise.resolve("t")])
    assert.throws(() => new Switchboard("ws://a", { ...options, token: token as never }), /token.*function/);
  const sb = await start();
  for (const name of [undefined, "", 7, {}]) assert.throws(() => sb.channel(name as never), TypeError);
  for (const after of [-1, 1.5, NaN, "7", 1n])
    assert.throws(() => sb.channel("c", { after: after as never }), TypeError);
  await assert.rejects(sb.channel("d").subscribe({ after: -1 }), TypeError);
  await sb.close();
});

test("a broker that was never reached is reported once, after each URL has failed", async () => {
  const sb = await start({}, ["ws://a", "ws://b"]);
  FakeSocket.last.onerror!({ message: "Unexpected server response: 404" });
  FakeSocket.last.end();
  await settle();
  assert.deepEqual(warnings, []);
  FakeSocket.last.onerror!({ message: "Unexpected server response: 404" });
  for (let i = 0; i < 5; i++) {
    FakeSocket.last.end();
    tick(20_000);
    await settle();
  }
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /^switchboard: cannot connect: .*response: 404.*\/ws.*origin/);
  await sb.close();
});

test("a bad token, and a name that is used twice, are reported", async () => {
  for (const [code, text] of [
    [4003, /unauthorized.*token/],
    [4002, /superseded.*`client`/],
    [4006, /bad_request.*\w$/],
  ] as const) {
    warnings = [];
    const sb = await start({ client: "tab", token: "t" });
    FakeSocket.last.connect();
    FakeSocket.last.end(code);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, text);
    await sb.close();
    assert.equal(warnings.length, 1);
  }
});

test("a token function that fails again and again is reported once, if nothing handles it", async () => {
  let calls = 0;
  const token = () => {
    calls++;
    throw new Error("the server answers 500");
  };
  const sb = await start({ token });
  for (let i = 0; i < 5; i++) {
    tick(20_000);
    await settle();
  }
  assert.ok(calls > 3);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /the token function failed: Error: the server answers 500$/);
  let handled = 0;
  sb.on("error", () => handled++);
  calls = 0;
  for (let i = 0; i < 5; i++) {
    tick(20_000);
    await settle();
  }
  assert.equal(handled, calls);
  await sb.close();
});

test("a channel that is refused is reported once", async () => {
  const sb = await start();
  FakeSocket.last.connect();
  for (let i = 0; i < 3; i++) {
    sb.channel("news");
    await settle();
    FakeSocket.last.answer("subscribe", { type: "error", code: "forbidden", message: "not allowed to subscribe" });
  }
  sb.user("bob");
  await settle();
  FakeSocket.last.answer("subscribe", { type: "error", code: "forbidden", message: "not allowed" });
  assert.equal(warnings.length, 2);
  assert.match(warnings[0]!, /news.*not allowed to subscribe.*token.*namespace/);
  assert.match(warnings[1]!, /bob/);
  await sb.close();
});

test("a subscription that the broker ends is reported, except by a leave", async () => {
  const sb = await start();
  const socket = FakeSocket.last;
  socket.connect();
  const ended = { type: "unsubscribed", channel: "room:7", code: "forbidden", message: "the user has left the room" };
  for (const leaves of [true, false]) {
    const room = new Room(sb, "7", "room:7", 1);
    await settle();
    socket.subscribed({ channel: "room:7" });
    const left = leaves ? room.leave() : undefined;
    socket.receive(ended);
    if (left) socket.answer("request", { type: "reply" });
    await left;
    assert.equal(warnings.length, leaves ? 0 : 1);
  }
  assert.match(warnings[0]!, /ended the subscription to room:7: the user has left the room.*`unsubscribed`/);
  assert.doesNotMatch(warnings[0]!, /token/);
});

test("what the application handles is not reported", async () => {
  const sb = await start({ client: "tab" });
  sb.on("disconnected", () => {});
  sb.on("closed", () => {});
  for (let i = 0; i < 3; i++) {
    FakeSocket.last.end();
    tick(20_000);
    await settle();
  }
  FakeSocket.last.connect();
  const refuse = () => FakeSocket.last.answer("subscribe", { type: "error", code: "forbidden", message: "no" });
  sb.channel("a").on("unsubscribed", () => {});
  await settle();
  refuse();
  const rejected = assert.rejects(sb.channel("b").subscribe(), { code: "forbidden" });
  await settle();
  refuse();
  await rejected;
  const ready = assert.rejects(sb.channel("c", { state: true }).state.ready(), { code: "forbidden" });
  await settle();
  refuse();
  await ready;
  sb.user("bob").on("unsubscribed", () => {});
  await settle();
  refuse();
  FakeSocket.last.end(4002);
  assert.deepEqual(warnings, []);
});

test("a logger gets what the console would, and may fail", async () => {
  const lines: string[] = [];
  const logger = {
    warn: (text: string) => {
      lines.push(text);
      throw new Error("disk full");
    },
  };
  mock.method(console, "error", () => {});
  const sb = await start({ client: "tab", logger });
  FakeSocket.last.connect();
  FakeSocket.last.end(4002);
  assert.match(lines[0]!, /superseded/);
  assert.deepEqual(warnings, []);
  assert.equal(sb.phase, "closed");
});

test("an end that the application has asked for is not reported", async () => {
  const closed = await start();
  await closed.close();
  mock.method(console, "error", () => {});
  const out = await start({
    token: () => {
      throw new SignedOutError("bye");
    },
  });
  assert.equal(out.phase, "closed");
  const ended = await start();
  FakeSocket.last.connect();
  FakeSocket.last.end(4005);
  assert.equal(ended.phase, "closed");
  assert.deepEqual(warnings, []);
});

test("a token that the broker ignores is reported once", async () => {
  const lines: string[] = [];
  for (const logger of [undefined, { warn: (text: string) => void lines.push(text) }]) {
    await start({ token: "a", logger });
    for (let i = 0; i < 2; i++) {
      FakeSocket.last.connect({ token_ignored: true });
      FakeSocket.last.end();
      tick(20_000);
      await settle();
    }
  }
  for (const reported of [warnings, lines.filter((line) => line.includes("token"))]) {
    assert.equal(reported.length, 1);
    assert.match(reported[0]!, /ignored the token.*no keys for tokens/);
  }
});
