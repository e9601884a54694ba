import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Limits, Outgoing } from "../src/wire.js";
import { FakeSocket, connected, dialled, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

const limits: Limits = {
  message: 65_536,
  channels: 128,
  message_rate: 500,
  byte_rate: 2 << 20,
  request_rate: 10,
  waiting: 64,
  waiting_bytes: 128 << 10,
};

/** A broker with token buckets: each has a rate, and a burst of four seconds. */
class Broker {
  readonly received: Outgoing[] = [];
  refused = 0;
  /** When each bucket is full again. */
  private readonly fullAt = new Map<string, number>();

  constructor(
    private readonly socket: FakeSocket,
    private readonly limits: Limits,
  ) {}

  private take(name: "message_rate" | "byte_rate" | "request_rate", n: number): boolean {
    const interval = 1000 / this.limits[name]!;
    const fullAt = Math.max(this.fullAt.get(name) ?? 0, Date.now());
    if (fullAt + interval - Date.now() > 4000) return false;
    this.fullAt.set(name, fullAt + n * interval);
    return true;
  }

  /** Answers all messages that wait for it. */
  answer(): void {
    for (const m of this.socket.sent.splice(0)) {
      const weight = m.type === "history" ? 10 : Math.max(1, Object.keys((m.set as object) ?? {}).length);
      const accepted =
        this.take("message_rate", weight) &&
        this.take("byte_rate", JSON.stringify(m).length) &&
        (m.type !== "request" || this.take("request_rate", 1));
      if (!accepted) {
        this.refused++;
        this.socket.receive({ type: "error", ref: m.ref!, code: "rate_limited", after_ms: 2 });
        continue;
      }
      this.received.push(m);
      const type = { publish: "published", request: "reply", history: "history" }[m.type]!;
      this.socket.receive({ type, ref: m.ref!, id: this.received.length });
    }
  }

  /** Answers until no message came for 5 s. Returns when the last one came, in ms from the start. */
  async serve(): Promise<number> {
    const began = Date.now();
    let last = began;
    while (Date.now() - last < 5000) {
      if (this.socket.sent.length) last = Date.now();
      this.answer();
      await Promise.resolve();
      tick(5);
    }
    return last - began;
  }
}

test("6,000 publishes at once stay within the rates, in order", async () => {
  const { sb, socket } = await connected({}, { limits });
  const broker = new Broker(socket, limits);
  const c = sb.channel("c", { subscribe: false });
  const order: number[] = [];
  const all = Array.from({ length: 6000 }, (_, i) => c.publish(i).then(() => order.push(i)));
  const took = await broker.serve();
  await Promise.all(all);
  assert.equal(broker.refused, 0);
  assert.deepEqual(
    broker.received.map((m) => m.data as number),
    Array.from({ length: 6000 }, (_, i) => i),
  );
  assert.equal(order.length, 6000);
  assert.ok(took > 8000 && took < 12_000, `${took} ms`);
  await sb.close();
});

test("each changed field counts as a message, and a read as ten", async () => {
  const { sb, socket } = await connected({}, { limits });
  const broker = new Broker(socket, limits);
  const c = sb.channel("c", { subscribe: false });
  const set = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`f${i}`, i]));
  const all = Array.from({ length: 300 }, (_, i) => (i % 3 ? c.update({ set }) : c.history()));
  await broker.serve();
  await Promise.all(all);
  assert.equal(broker.refused, 0);
  await sb.close();
});

test("publishes wait for the byte rate", async () => {
  const { sb, socket } = await connected({}, { limits: { ...limits, byte_rate: 100_000 } });
  const broker = new Broker(socket, { ...limits, byte_rate: 100_000 });
  const c = sb.channel("c", { subscribe: false });
  const all = Array.from({ length: 40 }, () => c.publish("x".repeat(30_000)));
  await broker.serve();
  await Promise.all(all);
  assert.equal(broker.refused, 0);
  await sb.close();
});

test("requests have a rate of their own, and delay nothing else", async () => {
  const { sb, socket } = await connected({ timeout: 0 }, { limits });
  const broker = new Broker(socket, limits);
  const all: Promise<unknown>[] = Array.from({ length: 100 }, (_, i) => sb.request(i));
  const published = sb.channel("c", { subscribe: false }).publish("soon");
  for (let i = 0; i < 3; i++) broker.answer();
  await published;
  await broker.serve();
  await Promise.all(all);
  assert.equal(broker.refused, 0);
  assert.deepEqual(
    broker.received.filter((m) => m.type === "request").map((m) => m.data as number),
    Array.from({ length: 100 }, (_, i) => i),
  );
  await sb.close();
});

test("an older broker names no limits", async () => {
  const { sb, socket } = await connected();
  const c = sb.channel("c", { subscribe: false });
  const all = Array.from({ length: 5000 }, () => c.publish("x"));
  for (let i = 0; i < 5000; i++) socket.answer("publish", { type: "published", id: i + 1 });
  await Promise.all(all);
});

test("a message over the limit is refused at the call", async () => {
  const { sb, socket } = await connected({}, { limits });
  const c = sb.channel("c", { subscribe: false });
  await assert.rejects(c.publish("x".repeat(65_536)), {
    code: "too_large",
    retryable: false,
    message: /65\d\d\d bytes, .*65536/,
  });
  await assert.rejects(c.publish("語".repeat(22_000)), { code: "too_large" });
  await assert.rejects(c.publish("😀".repeat(16_400)), { code: "too_large" });
  assert.equal(socket.types, "");
  for (const fits of ["é".repeat(32_700), "語".repeat(21_800), "😀".repeat(16_300)]) {
    void c.publish(fits).catch(() => {});
    const m = socket.answer("publish", { type: "published", id: 1 });
    assert.ok(Buffer.byteLength(JSON.stringify(m)) <= 65_536);
  }
});

test("before the limit is known, the broker refuses a message that is too large", async () => {
  const { sb } = await dialled();
  const c = sb.channel("c", { subscribe: false });
  const large = assert.rejects(c.publish("x".repeat(70_000)), { code: "too_large" });
  FakeSocket.last.connect({ limits });
  FakeSocket.last.answer("publish", { type: "error", code: "too_large" });
  await large;
});

test("the ref is the first member: the broker reads no more of a message that is too large", async () => {
  const { sb, socket } = await connected();
  const texts: string[] = [];
  socket.send = (text: string) => void texts.push(text);
  void sb.request("x").catch(() => {});
  assert.match(texts[0]!, /^\{"ref":\d+,"type":"request","data":"x"\}$/);
});

test("at most 10,000 calls and 16 MiB wait", async () => {
  const { sb } = await dialled();
  const c = sb.channel("c");
  const waiting = Array.from({ length: 10_000 }, (_, i) => c.publish(i).catch((error: { code: string }) => error.code));
  await assert.rejects(c.publish(1), { code: "queue_full", retryable: true });
  await assert.rejects(sb.request(1), { code: "queue_full" });
  tick(30_000);
  assert.deepEqual([...new Set(await Promise.all(waiting))], ["not_sent"]);
  const large = "x".repeat(1 << 20);
  const first = Array.from({ length: 15 }, () => c.publish(large).catch(() => {}));
  await assert.rejects(c.publish(large.repeat(2)), { code: "queue_full" });
  void c.publish("small").catch(() => {});
  tick(30_000);
  await Promise.all(first);
  void c.publish(large.repeat(20)).catch(() => {}); // a single waiting call may be larger
  await sb.close();
});

test("a subscribe above the limit of channels is not repeated, and a later call asks again", async () => {
  const { sb, socket } = await connected();
  const c = sb.channel("c", { subscribe: false });
  const refused = assert.rejects(c.subscribe(), { code: "rate_limited", retryable: false });
  await settle();
  socket.answer("subscribe", { type: "error", code: "rate_limited", message: "128 channels", retry: false });
  await refused;
  tick(60_000);
  assert.ok(!socket.types.includes("subscribe"));
  const again = c.subscribe();
  await settle();
  socket.subscribed();
  await again;
});

test("a subscribe that is refused with after_ms is repeated after that time", async () => {
  const { sb, socket } = await connected({ pingAfter: 1e9 });
  const subscribed = sb.channel("c").subscribe();
  await settle();
  socket.answer("subscribe", { type: "error", code: "rate_limited", after_ms: 7000 });
  tick(6999);
  assert.equal(socket.types, "");
  tick(1);
  socket.subscribed();
  await subscribed;
});
