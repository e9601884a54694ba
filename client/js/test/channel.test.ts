import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Channel, Gap, Json, Switchboard } from "../src/index.js";
import { FakeSocket, connected, reconnect, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

/** Subscribes to the channel c at position 10, and collects what its handlers see. */
async function subscribed(sb: Switchboard): Promise<{ channel: Channel; seen: unknown[] }> {
  const channel = sb.channel("c");
  const seen: unknown[] = [];
  channel.on("message", (data) => seen.push(data));
  channel.on("gap", ({ after, id }: Gap) => seen.push(`gap ${after} ${id}`));
  await settle();
  FakeSocket.last.subscribed();
  return { channel, seen };
}

const message = (id: number, data: Json = id) => ({ type: "message", channel: "c", id, data });

test("a channel resumes after the last message, and drops what it has seen", async () => {
  const { sb, socket } = await connected();
  const { channel, seen } = await subscribed(sb);
  assert.equal(channel.position, 10);
  socket.receive(message(11), message(12), message(12), message(11));
  assert.equal(channel.position, 12);
  const next = await reconnect();
  next.receive(message(13)); // of no subscription yet
  assert.equal(next.subscribed({ id: 13, recovered: true }).after, 12);
  next.receive(message(12), message(13));
  assert.deepEqual(seen, [11, 12, 13]);
});

test("an unknown position is a gap and a new position", async () => {
  const { sb, socket } = await connected();
  const { channel, seen } = await subscribed(sb);
  socket.receive(message(20));
  const next = await reconnect();
  next.subscribed({ id: 15, recovered: false });
  next.receive(message(16), message(30));
  assert.deepEqual(seen, [20, "gap 20 15", 16, 30]);
  assert.equal(channel.position, 30);
});

test("a gap moves the position, unless it is late; a reset moves it back", async () => {
  const { sb, socket } = await connected();
  const { channel, seen } = await subscribed(sb);
  const gap = (after: number, id: number) => ({ type: "gap", channel: "c", after, id });
  socket.receive(gap(10, 15), message(14), message(16), gap(15, 15), message(16));
  assert.equal(channel.position, 16);
  socket.receive(gap(16, 12), message(13));
  assert.deepEqual(seen, ["gap 10 15", 16, "gap 15 15", "gap 16 12", 13]);
  assert.equal(channel.position, 13);
});

test("handlers of a channel run one after another, and then the position moves", async () => {
  const { sb, socket } = await connected();
  const { channel, seen } = await subscribed(sb);
  const release: (() => void)[] = [];
  channel.on("message", () => new Promise<void>((resolve) => release.push(resolve)));
  socket.receive(message(11), message(12));
  assert.deepEqual([seen, channel.position], [[11], 10]);
  const next = await reconnect();
  assert.equal(next.subscribed({ recovered: true }).after, 12); // it waits in this client
  release[0]!();
  await settle();
  assert.deepEqual([seen, channel.position], [[11, 12], 11]);
});

test("off removes a handler of once", async () => {
  const { sb, socket } = await connected();
  const { channel, seen } = await subscribed(sb);
  const twice = (data: unknown) => seen.push(`once ${String(data)}`);
  channel.once("message", twice);
  channel.off("message", twice);
  channel.once("message", (data) => seen.push(`kept ${String(data)}`));
  socket.receive(message(11), message(12));
  assert.deepEqual(seen, [11, "kept 11", 12]);
});

test("a handler that throws is isolated", async () => {
  const { sb, socket, errors } = await connected();
  const { channel, seen } = await subscribed(sb);
  channel.on("message", () => {
    throw new Error("sync");
  });
  channel.on("message", () => Promise.reject(new Error("async")));
  socket.receive(message(11));
  await settle();
  assert.deepEqual(
    errors.map((e) => (e as Error).message),
    ["sync", "async"],
  );
  assert.deepEqual([seen, channel.position], [[11], 11]);
});

test("a refused subscription ends, a refusal for now is repeated", async () => {
  const { sb, socket } = await connected();
  const codes: string[] = [];
  const channel = sb.channel("c");
  channel.on("unsubscribed", ({ code }) => codes.push(code));
  const first = channel.subscribe();
  await settle();
  socket.answer("subscribe", { type: "error", code: "rate_limited", message: "later" });
  tick(20_000);
  socket.answer("subscribe", { type: "error", code: "forbidden", message: "no" });
  await assert.rejects(first, { code: "forbidden" });
  assert.deepEqual(codes, ["forbidden"]);
  const next = await reconnect();
  assert.equal(next.types, "");
  const again = channel.subscribe();
  await settle();
  next.subscribed();
  assert.deepEqual(await again, { id: 10, recovered: true });
});

test("a message has its author, and one without data only moves the position", async () => {
  const { sb, socket } = await connected();
  const { channel } = await subscribed(sb);
  const authors: unknown[] = [];
  channel.on("message", (data, { by }) => authors.push([data, by]));
  socket.receive({ ...message(11), by: "amy/phone" }, { type: "message", channel: "c", id: 12 }, message(13));
  await settle();
  assert.deepEqual(
    authors.map((one) => (one as unknown[])[1]),
    ["amy/phone", undefined],
  );
  assert.equal(channel.position, 13);
  void channel.publish("hi", { echo: false });
  assert.equal(socket.take("publish").echo, false);
});

test("the report of an erasure moves the position, and is no message", async () => {
  const { sb, socket } = await connected();
  const { channel } = await subscribed(sb);
  const seen: unknown[] = [];
  channel.on("message", (_, { id }) => seen.push(id));
  channel.on("erase", (id, info) => seen.push([id, info.id]));
  socket.receive(message(11), { type: "message", channel: "c", id: 12, erase: 11 }, message(13));
  await settle();
  assert.deepEqual(seen, [11, [11, 12], 13]);
  assert.equal(channel.position, 13);
});

test("the broker can end a subscription", async () => {
  const { sb, socket } = await connected();
  const { channel, seen } = await subscribed(sb);
  let code = "";
  channel.on("unsubscribed", (error) => (code = error.code));
  socket.receive({ type: "unsubscribed", channel: "c", code: "forbidden", message: "no" }, message(11));
  assert.equal(code, "forbidden");
  assert.deepEqual(seen, []);
});

test("unsubscribe forgets the position; messages of the old subscription are ignored", async () => {
  const { sb, socket } = await connected();
  const { channel, seen } = await subscribed(sb);
  socket.receive(message(11));
  const done = channel.unsubscribe();
  void channel.subscribe();
  await settle();
  socket.receive(message(12));
  socket.answer("unsubscribe", { type: "unsubscribed", channel: "c" });
  await done;
  assert.equal(socket.subscribed({ id: 12 }).after, undefined);
  socket.receive(message(13));
  assert.deepEqual(seen, [11, 13]);
});

test("an unsubscribe before the answer to the subscribe wins", async () => {
  const { sb, socket } = await connected();
  const channel = sb.channel("c");
  const first = assert.rejects(channel.subscribe(), { code: "unsubscribed" });
  await settle();
  void channel.unsubscribe();
  await first;
  socket.subscribed();
  socket.receive(message(11));
  assert.equal(channel.position, undefined);
});

test("all has a position of its own", async () => {
  const { sb, socket } = await connected();
  const seen: unknown[] = [];
  sb.all.on("message", (data) => seen.push(data));
  sb.all.on("gap", ({ after, id }) => seen.push(`gap ${after} ${id}`));
  socket.receive({ type: "message", channel: "$all", id: 101, data: "a" });
  socket.end();
  tick(20_000);
  await settle();
  assert.equal(FakeSocket.last.connect({ id: 150 }).after, 101);
  FakeSocket.last.receive(
    { type: "gap", channel: "$all", after: 101, id: 140 },
    { type: "message", channel: "$all", id: 141, data: "b" },
  );
  assert.deepEqual(seen, ["a", "gap 101 140", "b"]);
});

test("members and state are added to the subscription by their first use", async () => {
  const { sb, socket } = await connected();
  const { channel } = await subscribed(sb);
  assert.equal(channel.members.size, 0);
  assert.equal(channel.state.size, 0);
  await settle();
  const m = socket.subscribed();
  assert.equal(m.presence, true);
  assert.equal(m.state, true);
});

test("a queue that its handlers do not take ends the connection until they have", async () => {
  const { sb, socket } = await connected({ pingAfter: 1e9 });
  const { channel } = await subscribed(sb);
  const release: (() => void)[] = [];
  let seen = 0;
  channel.on("message", () => (++seen === 1 ? new Promise<void>((resolve) => release.push(resolve)) : undefined));
  for (let id = 11; id <= 11 + 10_001; id++) socket.receive(message(id));
  assert.ok(socket.closed);
  const before = FakeSocket.count;
  tick(20_000);
  await settle();
  assert.equal(FakeSocket.count, before);
  release[0]!();
  await settle();
  tick(20_000);
  await settle();
  assert.equal(FakeSocket.count, before + 1);
  FakeSocket.last.connect();
  assert.equal(FakeSocket.last.subscribed({ recovered: true }).after, 10 + seen);
});
