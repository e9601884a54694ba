import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { SwitchboardError } from "../src/index.js";
import { FakeSocket, connected, dialled, reconnect, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

test("answers find their calls", async () => {
  const { sb, socket } = await connected();
  const channel = sb.channel("c", { subscribe: false });
  const published = channel.publish({ a: 1 }, { durable: true });
  const history = channel.history({ limit: 5 });
  const called = sb.call("room.join", { room: "r" });
  assert.deepEqual(socket.answer("history", { type: "history", messages: [{ id: 1, data: 2 }], more: true }).limit, 5);
  const sent = socket.answer("publish", { type: "published", id: 7 });
  assert.deepEqual([sent.data, sent.durable], [{ a: 1 }, true]);
  const request = socket.take("request");
  assert.deepEqual([request.method, request.data], ["room.join", { room: "r" }]);
  socket.receive({ type: "accepted", ref: request.ref! }, { type: "reply", ref: request.ref!, data: { n: 1 } });
  assert.deepEqual(await published, { id: 7, fields: {} });
  assert.deepEqual(await history, { messages: [{ id: 1, data: 2 }], more: true, last: 1, recovered: true });
  assert.deepEqual(await called, { n: 1 });
});

test("a refusal has its facts", async () => {
  const { sb, socket } = await connected();
  const refused = sb
    .channel("c", { subscribe: false })
    .set("x", 1)
    .catch((error: unknown) => error);
  socket.answer("publish", {
    type: "error",
    code: "full",
    message: "too many",
    group: "seat/",
    max: 1,
    fields: { "seat/1": [5, "amy", 99, "away"], x: null },
  });
  const error = (await refused) as SwitchboardError;
  assert.ok(error instanceof SwitchboardError);
  assert.deepEqual(
    { code: error.code, group: error.group, max: error.max, fields: error.fields },
    {
      code: "full",
      group: "seat/",
      max: 1,
      fields: { "seat/1": { id: 5, value: "amy", until: 99, away: true }, x: null },
    },
  );
});

test("calls wait for a connection, and subscriptions are sent first", async () => {
  const { sb } = await dialled();
  const channel = sb.channel("c");
  void channel.publish(1).catch(() => {});
  await settle();
  FakeSocket.last.connect();
  assert.equal(FakeSocket.last.types, "subscribe publish");
});

test("a call that was not sent in time says so", async () => {
  const { sb } = await dialled({ timeout: 500 });
  const call = assert.rejects(sb.request(1), { code: "not_sent" });
  tick(500);
  await call;
});

test("a call without an answer in time", async () => {
  const { sb } = await connected({ timeout: 500 });
  const channel = sb.channel("c", { subscribe: false });
  const results = Promise.all([
    assert.rejects(sb.request(1), { code: "unknown_outcome" }),
    assert.rejects(channel.publish(1), { code: "unknown_outcome" }),
    assert.rejects(channel.history(), { code: "timeout" }),
    assert.rejects(channel.publish(1, { timeout: 200 }), { code: "unknown_outcome" }),
  ]);
  tick(500);
  await results;
});

test("after a lost connection, what changes nothing and what has a key is repeated", async () => {
  const { sb, socket } = await connected({ timeout: 0 });
  const channel = sb.channel("c", { subscribe: false });
  const results = Promise.all([
    assert.rejects(sb.request(1), { code: "unknown_outcome" }),
    assert.rejects(sb.call("m"), { code: "unknown_outcome" }),
    assert.rejects(channel.publish(1), { code: "unknown_outcome" }),
  ]);
  const keyed = channel.publish(2, { key: "k1" });
  const drawn = channel.add("n", 1, { key: true });
  const history = channel.history();
  const key = socket.sent.at(-2)!.key as string;
  assert.ok(key.length >= 16);
  const next = await reconnect();
  await results;
  assert.equal(next.types, "publish publish history");
  assert.equal(next.answer("publish", { type: "published", id: 8 }).key, "k1");
  assert.equal(next.answer("publish", { type: "published", id: 9, fields: { n: 4 as never } }).key, key);
  next.answer("history", { type: "history", messages: [] });
  assert.equal((await keyed).id, 8);
  assert.equal(await drawn, 4);
  assert.deepEqual((await history).messages, []);
});

test("a publish with a key is not repeated after a minute", async () => {
  const { sb, socket } = await connected({ timeout: 0, pingAfter: 1e9 });
  const call = assert.rejects(sb.channel("c", { subscribe: false }).publish(1, { key: "k" }), {
    code: "unknown_outcome",
  });
  tick(60_001);
  socket.end();
  await call;
});

test("at most 48 messages wait for answers", async () => {
  const { sb, socket } = await connected();
  const channel = sb.channel("c", { subscribe: false });
  for (let i = 0; i < 60; i++) void channel.history().catch(() => {});
  assert.equal(socket.sent.length, 48);
  for (let i = 0; i < 10; i++) socket.answer("history", { type: "history" });
  assert.equal(socket.sent.length, 48);
  for (let i = 0; i < 48; i++) socket.answer("history", { type: "history" });
  assert.equal(socket.sent.length, 2);
});

test("at most 96 KiB wait for answers, and a larger message alone", async () => {
  const { sb, socket } = await connected();
  const channel = sb.channel("c", { subscribe: false });
  for (let i = 0; i < 3; i++) void channel.publish("x".repeat(50 << 10)).catch(() => {});
  assert.equal(socket.sent.length, 1);
  socket.answer("publish", { type: "published", id: 1 });
  assert.equal(socket.sent.length, 1);
});

test("calls that wait for answers are bounded in bytes, not in characters", async () => {
  const { sb, socket } = await connected({ timeout: 0 });
  const channel = sb.channel("c", { subscribe: false });
  for (let i = 0; i < 4; i++) void channel.publish("語".repeat(10_000)).catch(() => {}); // 30 KB each
  assert.equal(socket.types, "publish publish publish");
  socket.answer("publish", { type: "published", id: 7 });
  assert.equal(socket.types, "publish publish publish");
  await sb.close();
});
