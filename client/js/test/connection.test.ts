import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Disconnected } from "../src/index.js";
import { FakeSocket, connected, dialled, reconnect, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

test("connect names the client, the instance and the attempt", async () => {
  const { sb } = await dialled({ client: "alice/phone", user: "alice", info: { a: 1 } });
  const first = FakeSocket.last.connect({ client: "alice/phone", user: "alice" });
  assert.equal(first.client, "phone");
  assert.equal(first.user, "alice");
  assert.deepEqual(first.info, { a: 1 });
  assert.equal(first.secret, undefined);
  assert.equal(first.attempt, 1);
  FakeSocket.last.end();
  tick(20_000);
  await settle();
  FakeSocket.last.onopen!();
  const second = FakeSocket.last.take("connect");
  assert.equal(second.attempt, 2);
  assert.equal(second.instance, first.instance);
  assert.equal(second.after, 100); // the position on $all
  assert.equal(sb.client, "alice/phone");
});

test("a client without a user keeps its name and a secret", async () => {
  await dialled();
  const first = FakeSocket.last.connect({ client: "c-broker", secret: "given" });
  assert.match(first.client, /^c-/);
  assert.ok(first.secret.length >= 16);
  FakeSocket.last.end();
  tick(20_000);
  await settle();
  const second = FakeSocket.last.connect();
  assert.equal(second.client, "c-broker"); // the broker had another client of that name
  assert.equal(second.secret, "given");
});

test("after_ms of the broker is the delay, and another instance is next", async () => {
  const { sb } = await dialled({}, ["ws://a/ws", "ws://b/ws"]);
  const first = FakeSocket.last.url;
  FakeSocket.last.connect();
  const ends: Disconnected[] = [];
  sb.on("disconnected", (d) => ends.push(d));
  FakeSocket.last.receive({ type: "closing", code: "draining", reconnect: true, after_ms: 1840 });
  assert.deepEqual(ends, [{ code: "draining", message: "draining", retryIn: 1840 }]);
  sb.wake(); // does not shorten it
  tick(1839);
  await settle();
  assert.equal(FakeSocket.last.url, first);
  tick(1);
  await settle();
  assert.notEqual(FakeSocket.last.url, first);
});

test("an absurd delay is bounded", async () => {
  const { sb } = await connected();
  let delay = 0;
  sb.on("disconnected", ({ retryIn }) => (delay = retryIn));
  FakeSocket.last.receive({ type: "closing", code: "draining", reconnect: true, after_ms: 1e12 });
  assert.equal(delay, 600_000);
});

test("the close codes say whether to reconnect", async () => {
  const want: Record<number, string> = {
    4001: "draining again",
    4002: "superseded closed",
    4003: "unauthorized closed",
    4004: "expired closed",
    4005: "disconnected closed",
    4006: "bad_request closed",
    4007: "slow again",
    4008: "idle again",
    4009: "overloaded again",
    1006: "lost again",
    1009: "lost again",
  };
  for (const [code, end] of Object.entries(want)) {
    const { sb } = await connected({ client: "phone" });
    let got = "";
    sb.on("disconnected", (d) => (got = `${d.code} again`));
    sb.on("closed", (d) => (got = `${d.code} closed`));
    FakeSocket.last.end(Number(code));
    assert.equal(got, end);
    await sb.close();
  }
});

test("a superseded client with a name of its own choice takes another name", async () => {
  await dialled();
  const first = FakeSocket.last.connect({ client: "c-same" });
  FakeSocket.last.end(4002);
  tick(20_000);
  await settle();
  const second = FakeSocket.last.connect();
  assert.notEqual(second.client, "c-same");
  assert.notEqual(second.client, first.client);
});

test("a refused connect counts as the close that follows, or as its own code", async () => {
  for (const [code, closing, want] of [
    ["unavailable", { type: "closing", code: "overloaded", reconnect: true, after_ms: 700 }, "overloaded 700"],
    ["unauthorized", undefined, "closed unauthorized"],
    ["bad_request", undefined, "closed bad_request"],
  ] as const) {
    const { sb } = await dialled();
    let got = "";
    sb.on("disconnected", (d) => (got = `${d.code} ${d.retryIn}`));
    sb.on("closed", (d) => (got = `closed ${d.code}`));
    const socket = FakeSocket.last;
    socket.onopen!();
    socket.receive({ type: "error", ref: socket.take("connect").ref!, code, message: "no" });
    if (closing) socket.receive(closing);
    tick(1000);
    assert.equal(got, want);
    await sb.close();
  }
});

test("a silent server is noticed", async () => {
  const { sb, socket } = await connected();
  let end = "";
  sb.on("disconnected", (d) => (end = d.message));
  tick(9_999);
  assert.equal(socket.types, "");
  tick(1);
  socket.take("ping");
  socket.receive({ type: "pong" });
  tick(10_000);
  socket.take("ping");
  tick(4_999);
  assert.equal(end, "");
  tick(1);
  assert.equal(end, "the server is silent");
  assert.ok(socket.closed);
});

test("a server that does not answer connect is given up", async () => {
  const { sb } = await dialled();
  let end = "";
  sb.on("disconnected", (d) => (end = d.message));
  tick(10_000);
  assert.equal(end, "no answer within 10000 ms");
});

test("a ping is answered with its ref", async () => {
  const { socket } = await connected();
  socket.receive({ type: "ping", ref: 9 });
  assert.deepEqual(socket.take("pong"), { type: "pong", ref: 9 });
});

test("wake connects at once, or verifies the connection", async () => {
  const { sb, socket } = await connected();
  sb.wake();
  socket.take("ping");
  socket.end();
  const before = FakeSocket.count;
  sb.wake();
  await settle();
  assert.equal(FakeSocket.count, before + 1);
});

test("an application reacts to its AppState", async () => {
  const handlers = new Set<(state: string) => void>();
  const appState = {
    addEventListener(_: "change", handler: (state: string) => void) {
      handlers.add(handler);
      return { remove: () => void handlers.delete(handler) };
    },
  };
  const change = (state: string) => handlers.forEach((handler) => handler(state));
  const written: string[] = [];
  const storage = { getItem: () => null, setItem: (_: string, text: string) => void written.push(text) };
  const { sb, socket } = await connected({ appState, storage });
  change("background");
  await settle();
  assert.equal(written.length, 1); // no timer runs in the background
  change("active");
  assert.equal(socket.types, "ping");
  tick(5000);
  assert.equal(sb.phase, "waiting");
  change("active");
  await settle();
  FakeSocket.last.connect();
  await sb.close();
  assert.equal(handlers.size, 0);
});

test("a page reacts to the network and to its visibility", async () => {
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const target = new EventTarget();
  const globals = globalThis as unknown as Record<string, unknown>;
  Object.assign(globals, {
    document: page,
    addEventListener: target.addEventListener.bind(target),
    removeEventListener: target.removeEventListener.bind(target),
  });
  try {
    const { sb, socket } = await connected();
    target.dispatchEvent(new Event("online"));
    socket.take("ping");
    socket.end();
    const before = FakeSocket.count;
    page.visibilityState = "hidden";
    page.dispatchEvent(new Event("visibilitychange"));
    await settle();
    assert.equal(FakeSocket.count, before);
    page.visibilityState = "visible";
    page.dispatchEvent(new Event("visibilitychange"));
    await settle();
    assert.equal(FakeSocket.count, before + 1);
    await sb.close();
    page.dispatchEvent(new Event("visibilitychange"));
    await settle();
    assert.equal(FakeSocket.count, before + 1);
  } finally {
    for (const name of ["document", "addEventListener", "removeEventListener"]) delete globals[name];
  }
});

test("messages that are no JSON, and unknown ones, are ignored", async () => {
  const { sb, socket, errors } = await connected();
  socket.onmessage!({ data: "{" });
  socket.receive({ type: "later", channel: "x" }, { type: "message", channel: "unknown", id: 1, data: 1 });
  assert.equal(sb.phase, "connected");
  assert.deepEqual(errors, []);
});

test("close ends everything", async () => {
  const { sb, socket } = await connected();
  const phases: string[] = [];
  sb.on("closed", ({ code }) => phases.push(code));
  const pending = assert.rejects(sb.request(1), { code: "unknown_outcome" });
  await sb.close();
  await pending;
  assert.ok(socket.closed);
  await assert.rejects(sb.call("x"), { code: "closed" });
  await assert.rejects(sb.channel("c").subscribe(), { code: "closed" });
  tick(100_000);
  assert.deepEqual(phases, ["closed"]);
  assert.equal(sb.phase, "closed");
});

test("a socket class that throws is a lost connection", async () => {
  class Broken {
    constructor() {
      throw new Error("no network");
    }
  }
  const { sb } = await dialled({ WebSocket: Broken as never });
  assert.equal(sb.phase, "waiting");
});

test("a handler that reconnects a channel sees the new connection", async () => {
  const { sb } = await connected();
  const urls: string[] = [];
  sb.on("connected", ({ url }) => urls.push(url));
  await reconnect();
  assert.deepEqual(urls, ["ws://a/ws"]);
});
