import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Draft } from "../src/index.js";
import type { Incoming } from "../src/wire.js";
import { FakeSocket, connected, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

interface Fields {
  turn: string;
  moves: number[];
  done: boolean;
}

/** Returns a channel with the state {turn: "amy", moves: [1]}. */
async function room() {
  const { sb } = await connected();
  const channel = sb.channel<unknown, Fields>("room");
  void channel.state;
  await settle();
  FakeSocket.last.subscribed();
  FakeSocket.last.receive({
    type: "state",
    channel: "room",
    id: 10,
    first: true,
    fields: { turn: [3, "amy"], moves: [4, [1]] },
  });
  return channel;
}

/** Runs a transaction, and returns what it has published. It is accepted. */
async function run(change: (s: Draft<Fields>) => unknown) {
  const done = (await room()).transact(change);
  await settle();
  const sent = FakeSocket.last.sent.some((m) => m.type === "publish")
    ? FakeSocket.last.answer("publish", { type: "published", id: 11 })
    : undefined;
  return { sent: sent && { set: sent.set, del: sent.del, if: sent.if }, result: await done };
}

test("what is read becomes a condition, what is written a change", async () => {
  for (const [change, want] of [
    [(s: Draft<Fields>) => (s.turn = `${s.turn}!`), { set: { turn: "amy!" }, del: [], if: { turn: 3 } }],
    [(s: Draft<Fields>) => (s.turn = "bob"), { set: { turn: "bob" }, del: [], if: {} }],
    [(s: Draft<Fields>) => s.moves!.push(2), { set: { moves: [1, 2] }, del: [], if: { moves: 4 } }],
    [(s: Draft<Fields>) => void (s.done ||= true), { set: { done: true }, del: [], if: { done: 0 } }],
    [(s: Draft<Fields>) => delete s.turn, { set: {}, del: ["turn"], if: {} }],
    [(s: Draft<Fields>) => void ("done" in s || (s.turn = "x")), { set: { turn: "x" }, del: [], if: { done: 0 } }],
    [
      (s: Draft<Fields>) => void (s.done = Object.keys(s).length === 2),
      { set: { done: true }, del: [], if: { turn: 3, moves: 4 } },
    ],
    [(s: Draft<Fields>) => s.moves!.length, undefined],
  ] as const) {
    assert.deepEqual(JSON.parse(JSON.stringify((await run(change)).sent ?? null)), want ?? null, String(change));
  }
  assert.equal((await run((s) => ((s.done = true), "result"))).result, "result");
});

test("after a conflict it runs again with the current values", async () => {
  const channel = await room();
  const done = channel.transact(async (s) => {
    s.turn = `${s.turn}+`;
    return s.done;
  });
  await settle();
  const first = FakeSocket.last.answer("publish", {
    type: "error",
    code: "conflict",
    message: "no",
    fields: { turn: [20, "cat"], done: [19, true] },
  });
  await settle();
  tick(250);
  await settle();
  const second = FakeSocket.last.answer("publish", { type: "published", id: 21 });
  assert.deepEqual(second.set, { turn: "cat+" });
  assert.deepEqual(second.if, { turn: 20, done: 19 });
  assert.notEqual(second.key, first.key);
  assert.equal(await done, true);
});

test("a large refusal has only ids, and the value is read", async () => {
  const channel = await room();
  const done = channel.transact((s) => void s.moves!.push(9));
  await settle();
  FakeSocket.last.answer("publish", { type: "error", code: "conflict", message: "no", fields: { moves: [20] } });
  await settle();
  FakeSocket.last.answer("state", { type: "state", id: 30, fields: { moves: [25, [7]] } });
  await settle();
  tick(250);
  await settle();
  const sent = FakeSocket.last.answer("publish", { type: "published", id: 31 });
  assert.deepEqual([sent.set, sent.if], [{ moves: [7, 9] }, { moves: 25 }]);
  await done;
});

test("other refusals, and a field that another user holds, are errors", async () => {
  const refusals: Partial<Incoming>[] = [
    { code: "forbidden" },
    { code: "conflict", fields: { turn: [3, "amy"] } }, // the condition is met
    { code: "conflict", fields: {} },
  ];
  for (const refusal of refusals) {
    const done = assert.rejects(
      (await room()).transact((s) => (s.turn = `${s.turn}!`)),
      { code: refusal.code! },
    );
    await settle();
    FakeSocket.last.answer("publish", { type: "error", message: "no", ...refusal });
    await done;
  }
});

test("it fails if the state may not be read", async () => {
  const { sb } = await connected();
  const done = assert.rejects(
    sb.channel("room", { subscribe: false }).transact(() => {}),
    { code: "forbidden" },
  );
  await settle();
  FakeSocket.last.answer("subscribe", { type: "error", code: "forbidden", message: "no" });
  await done;
});
