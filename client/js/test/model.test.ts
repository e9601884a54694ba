import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Switchboard } from "../src/index.js";
import { settle, stopClock, tick } from "./fake.js";
import { ModelBroker, ModelSocket, random, socketOf } from "./modelbroker.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

type Seen = { id: number; data?: unknown; after?: number | undefined };

/** Runs a client against a model broker, with faults at random. Returns what its handlers saw. */
async function run(seed: number, steps: number) {
  const rnd = random(seed);
  const broker = new ModelBroker(rnd);
  const sb = new Switchboard("ws://model", { WebSocket: socketOf(broker), client: "c-1", timeout: 0 });
  const channel = sb.channel("c", { state: true });
  const seen: Seen[] = [];
  const inbox: number[] = [];
  sb.on("error", () => {});
  let start = Infinity;
  channel.once("subscribed", ({ id }) => (start = id!));
  channel.on("message", (data, { id }) => {
    seen.push({ id, data });
    if (rnd(8) === 0) return new Promise((resolve) => setTimeout(resolve, 10));
    return;
  });
  channel.on("gap", (gap) => seen.push(gap));
  let calm = false;
  sb.inbox.on("message", async (_, { id }) => {
    if (!calm && rnd(3) === 0) throw new Error("the handler fails");
    inbox.push(id);
  });
  const published: number[] = [];
  const pushed: number[] = [];
  const open = async () => {
    await settle();
    if (ModelSocket.last && rnd(4) > 0) broker.open(ModelSocket.last);
    else ModelSocket.last?.onclose?.({ code: 1006 });
    ModelSocket.last = undefined;
  };
  await open();
  for (let i = 0; i < steps; i++) {
    const dice = rnd(20);
    if (dice < 8) published.push(broker.publish());
    else if (dice < 11) pushed.push(broker.push());
    else if (dice < 16) broker.deliver(rnd(6));
    else if (dice === 16) broker.trim();
    else if (dice === 17) broker.drop();
    else if (dice === 18 && rnd(3) === 0) broker.failover();
    if (rnd(3) === 0) tick(300);
    await open();
  }
  calm = true;
  for (let i = 0; i < 500 && !(sb.phase === "connected" && broker.idle && !broker.queue.length); i++) {
    broker.deliver(1000);
    tick(20_000);
    await open();
  }
  for (let i = 0; i < published.length && channel.position !== broker.log.at(-1)?.id; i++) {
    tick(10); // for handlers that wait
    await settle();
  }
  await sb.close();
  return { broker, channel, start, seen, inbox, pushed };
}

/** Checks that each message was seen once, in order, or is in a gap. */
function check(broker: ModelBroker, start: number, seen: Seen[]): void {
  const covered = (id: number) => seen.some((s) => s.data === undefined && s.after! < id && id <= s.id);
  const times = new Map<number, number>();
  let last = 0;
  for (const s of seen) {
    if (s.data === undefined) {
      if (s.id < s.after!) last = s.id; // a reset: what was seen above it arrives again, or is lost
      continue;
    }
    assert.ok(s.id > last, `${s.id} after ${last}`);
    last = s.id;
    times.set(s.id, (times.get(s.id) ?? 0) + 1);
  }
  const resets = seen.filter((s) => s.data === undefined && s.id < s.after!);
  for (const [id, n] of times) {
    assert.ok(n === 1 || resets.some((r) => r.id < id && id <= r.after!), `${id} was seen ${n} times`);
  }
  for (const { id, data } of broker.log) {
    if (data !== undefined && id > start) assert.ok(times.has(id) || covered(id), `${id} is missing`);
  }
}

test("over any faults, each message is seen once and in order, or is in a gap", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { broker, channel, start, seen, inbox, pushed } = await run(seed, 120);
    try {
      check(broker, start, seen);
      assert.deepEqual(inbox, pushed);
      assert.deepEqual(
        Object.fromEntries([...channel.state.entries()].map(([name, e]) => [name, e.id])),
        Object.fromEntries([...broker.fields].map(([name, [id]]) => [name, id])),
      );
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
});
