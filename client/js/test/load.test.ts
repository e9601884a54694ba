import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Loaded, Switchboard } from "../src/index.js";
import { FakeSocket, connected, reconnect, settle, stopClock, tick } from "./fake.js";

beforeEach(() => stopClock());
afterEach(() => {
  mock.restoreAll();
  mock.timers.reset();
});

const message = (id: number) => ({ type: "message", channel: "c", id, data: id });

/** A database whose answers wait until the test gives them. */
class Database {
  readonly reads: { resolve: (l: Loaded & { rows: string }) => void; reject: (e: unknown) => void }[] = [];
  readonly load = () =>
    new Promise<Loaded & { rows: string }>((resolve, reject) => this.reads.push({ resolve, reject }));

  async answer(rows: string, after?: number): Promise<void> {
    this.reads.shift()!.resolve({ rows, after });
    await settle();
  }
}

async function start(sb: Switchboard): Promise<{ db: Database; seen: unknown[] }> {
  const db = new Database();
  const seen: unknown[] = [];
  const channel = sb.channel("c", { load: db.load });
  channel.on("loaded", ({ rows }) => void seen.push(rows));
  channel.on("message", (data) => void seen.push(data));
  channel.on("gap", () => void seen.push("gap"));
  await settle();
  assert.deepEqual(db.reads, []); // what is published before the subscription must be in the data
  return { db, seen };
}

test("messages wait for the data, and those that are in it are dropped", async () => {
  const { sb, socket } = await connected();
  const { db, seen } = await start(sb);
  assert.equal(socket.subscribed({ id: 10 })["after"], undefined);
  socket.receive(message(11), message(12), message(13));
  await settle();
  assert.deepEqual(seen, []);
  await db.answer("rows", 12);
  socket.receive(message(14));
  assert.deepEqual(seen, ["rows", 13, 14]);
  assert.equal(sb.channel("c").position, 14);
});

test("without a position, all messages after the begin of the subscription follow", async () => {
  const { sb, socket } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 10 });
  socket.receive(message(11));
  await settle();
  await db.answer("rows");
  assert.deepEqual(seen, ["rows", 11]);
});

test("a position before the subscription continues there", async () => {
  const { sb, socket } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 10 });
  socket.receive(message(11));
  await settle();
  await db.answer("rows", 7);
  socket.receive(message(12)); // of the subscription that ends
  socket.take("unsubscribe");
  assert.equal(socket.subscribed({ id: 12, recovered: true })["after"], 7);
  for (let id = 8; id <= 12; id++) socket.receive(message(id));
  assert.deepEqual(seen, ["rows", 8, 9, 10, 11, 12]);
  assert.deepEqual(db.reads, []);
});

test("a reconnect does not load, unless messages are gone", async () => {
  const { sb, socket } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 10 });
  await settle();
  await db.answer("rows", 10);
  let next = await reconnect();
  assert.equal(next.subscribed({ recovered: true, id: 12 })["after"], 10);
  next.receive(message(11), message(12));
  assert.deepEqual(seen, ["rows", 11, 12]);
  next = await reconnect();
  next.subscribed({ recovered: false, id: 20 });
  next.receive(message(21), message(22));
  await settle();
  await db.answer("new rows", 21);
  assert.deepEqual(seen, ["rows", 11, 12, "gap", "new rows", 22]);
});

test("a position from before the gap is too old, and is read again", async () => {
  const { sb, socket, errors } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 10 });
  await settle();
  await db.answer("rows", 10);
  socket.receive({ type: "gap", channel: "c", after: 10, id: 20 }, message(21));
  await settle();
  await db.answer("a replica that is late", 15);
  assert.match(String(errors[0]), /15 is before the oldest message, 20/);
  socket.take("unsubscribe");
  tick(1000);
  await settle();
  assert.equal(socket.subscribed({ id: 30 })["after"], undefined);
  await settle();
  await db.answer("new rows", 30);
  socket.receive(message(31));
  assert.deepEqual(seen, ["rows", "gap", "new rows", 31]);
});

test("a gap after a later message: the data has it, or it arrives again", async () => {
  const { sb, socket, errors } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 10 });
  await settle();
  socket.receive(message(21), { type: "gap", channel: "c", after: 10, id: 20 }, message(22));
  await db.answer("rows", 10);
  await db.answer("rows to 20", 20); // without the change of 21, which the handlers have seen
  socket.take("unsubscribe");
  assert.equal(socket.subscribed({ id: 22, recovered: true })["after"], 20);
  for (const id of [21, 22, 23]) socket.receive(message(id));
  assert.deepEqual(seen, ["rows", 21, "gap", "rows to 20", 21, 22, 23]);
  socket.receive(message(26), { type: "gap", channel: "c", after: 23, id: 25 }, message(27));
  await settle();
  await db.answer("rows to 26", 26);
  assert.ok(!socket.types.includes("subscribe"));
  assert.deepEqual([seen.slice(7), errors], [[26, "gap", "rows to 26", 27], []]);
});

test("ids that begin again after a reset are not taken for those that were seen", async () => {
  const { sb, socket } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 50 });
  await settle();
  await db.answer("rows", 50);
  socket.receive({ type: "gap", channel: "c", after: 50, id: 3 }, message(4));
  await settle();
  await db.answer("rows to 3", 3);
  assert.ok(!socket.types.includes("unsubscribe"));
  assert.deepEqual(seen, ["rows", "gap", "rows to 3", 4]);
});

test("the beginning is the oldest message, also after a gap", async () => {
  const { sb, socket, errors } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 10 });
  await settle();
  await db.answer("rows", 0);
  socket.take("unsubscribe");
  assert.equal(socket.subscribed({ recovered: false, id: 5 })["after"], 0);
  socket.receive(message(6));
  await settle();
  await db.answer("rows again", 0);
  assert.deepEqual([seen, errors], [["rows", "gap", "rows again", 6], []]);
});

test("a load that fails is reported and repeated, with growing delays and without messages that wait", async () => {
  mock.method(Math, "random", () => 0.999);
  const { sb, socket, errors } = await connected({ pingAfter: 1e9 });
  const { db, seen } = await start(sb);
  const delays = [];
  for (const failure of ["down", "late", { after: -1 }, null]) {
    socket.subscribed({ id: 10 });
    socket.receive(message(11));
    await settle();
    if (failure === "down") db.reads.shift()!.reject(new Error("down"));
    else if (failure === "late") tick(30_000);
    else db.reads.shift()!.resolve(failure as never);
    db.reads.length = 0;
    await settle();
    socket.take("unsubscribe");
    let delay = 0;
    for (; delay < 21_000 && !socket.types.includes("subscribe"); delay += 100) {
      tick(100);
      await settle();
    }
    delays.push(delay);
  }
  assert.equal(errors.length, 4);
  assert.deepEqual([seen, delays[0]], [[], 800]);
  assert.ok(delays.at(-1)! > 10_000);
  socket.subscribed({ id: 20 });
  socket.receive(message(21));
  await settle();
  await db.answer("rows", 20);
  assert.deepEqual(seen, ["rows", 21]);
});

test("a connection that is lost during the load is no reason to load again", async () => {
  const { sb, socket } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 10 });
  socket.receive(message(11));
  await settle();
  const next = await reconnect();
  assert.equal(next.subscribed({ recovered: true, id: 12 })["after"], 11);
  next.receive(message(12));
  await settle();
  await db.answer("rows", 10);
  assert.deepEqual(seen, ["rows", 11, 12]);
});

test("an answer after the end of the subscription is dropped, and the next one loads again", async () => {
  const { sb, socket } = await connected();
  const { db, seen } = await start(sb);
  socket.subscribed({ id: 10 });
  await settle();
  const ended = sb.channel("c").unsubscribe();
  socket.answer("unsubscribe", { type: "unsubscribed" });
  await ended;
  void sb.channel("c").subscribe();
  await settle();
  socket.subscribed({ id: 30 });
  socket.receive(message(31));
  await db.answer("of the first subscription", 20);
  assert.deepEqual(seen, []);
  await db.answer("rows", 30);
  assert.deepEqual(seen, ["rows", 31]);
});

test("the stored position is not used, and one of the caller is refused", async () => {
  const storage = new Map([["switchboard", JSON.stringify({ channels: { c: 5 } })]]);
  const { sb, socket } = await connected({
    storage: { getItem: (k) => storage.get(k) ?? null, setItem: (k, v) => void storage.set(k, v) },
  });
  await start(sb);
  assert.equal(socket.subscribed({ id: 10 })["after"], undefined);
  assert.throws(() => sb.channel("d", { load: () => ({}), after: 7 }), TypeError);
  assert.equal(FakeSocket.last, socket);
});
