import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { StateChange } from "../src/index.js";
import type { WireField } from "../src/wire.js";
import { FakeSocket, connected, reconnect, settle, stopClock } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

const page = (id: number, fields: Record<string, WireField>, more?: boolean, first = true) => ({
  type: "state",
  channel: "c",
  id,
  fields,
  first,
  more: more!,
});

async function subscribed() {
  const { sb, socket } = await connected();
  const channel = sb.channel("c", { state: true });
  const changes: StateChange[] = [];
  channel.state.on("change", (change) => changes.push(change));
  await settle();
  socket.subscribed();
  return { socket, channel, state: channel.state, changes };
}

test("the map shows complete states only", async () => {
  const { socket, channel, state, changes } = await subscribed();
  let ready = false;
  void state.ready().then(() => (ready = true));
  socket.receive(page(10, { a: [1, "x"] }, true));
  await settle();
  assert.deepEqual([state.size, ready], [0, false]);
  socket.receive(page(10, { b: [2, 5, 99, "away"] }, false, false));
  await settle();
  assert.deepEqual(Object.fromEntries(state), { a: "x", b: 5 });
  assert.deepEqual(state.entry("b"), { id: 2, value: 5, until: 99, away: true });
  assert.ok(ready && state.complete);
  const seen: unknown[] = [];
  channel.on("message", (data) => seen.push([data, state.get("a")]));
  socket.receive(
    { type: "message", channel: "c", id: 11, set: { a: "y" }, until: { a: 7 }, data: "both", by: "amy" },
    { type: "message", channel: "c", id: 12, gone: { b: "left" } },
    { type: "message", channel: "c", id: 13 },
    { type: "message", channel: "c", id: 14, cleared: true, set: { z: 1 } },
  );
  assert.deepEqual(seen, [["both", "y"]]);
  assert.deepEqual(
    changes.map((c) => [c.id, c.full, c.names.join()]),
    [
      [10, true, "a,b"],
      [11, false, "a"],
      [12, false, "b"],
      [14, false, "a,z"],
    ],
  );
  assert.equal(changes[1]!.by, "amy");
  assert.deepEqual([Object.fromEntries(state), state.id, channel.position], [{ z: 1 }, 14, 14]);
});

test("held is sent when all fields at the position are here", async () => {
  const { socket, state } = await subscribed();
  socket.receive(page(10, { a: [1, 1] }, true));
  let next = await reconnect(); // in the middle of a series
  assert.deepEqual(pick(next.subscribed({ recovered: true })), { after: 10, held: undefined });
  next.receive(page(12, { a: [11, 2] })); // newer than the position, so a failover may lose it
  next = await reconnect();
  assert.deepEqual(pick(next.subscribed({ recovered: true })), { after: 10, held: undefined });
  next.receive(page(12, { a: [11, 2] }), { type: "message", channel: "c", id: 13, set: { a: 3 } });
  next = await reconnect();
  assert.deepEqual(pick(next.subscribed({ recovered: true })), { after: 13, held: true });
  next.receive({ type: "message", channel: "c", id: 14, set: { a: 4 } });
  assert.equal(state.get("a"), 4);
  next.receive({ type: "gap", channel: "c", after: 14, id: 20 });
  next = await reconnect();
  assert.deepEqual(pick(next.subscribed({ recovered: true })), { after: 20, held: undefined });
  assert.equal(state.get("a"), 4);
  next.receive(page(21, { b: [1, 1] }));
  assert.deepEqual([...state.keys()], ["b"]);
});

test("held that is not recovered, is followed by pages", async () => {
  const { socket, state, changes } = await subscribed();
  socket.receive(page(10, { a: [1, 1], b: [2, 2] }));
  const next = await reconnect();
  assert.equal(next.subscribed({ recovered: false, id: 5 }).held, true);
  next.receive(page(5, { a: [1, 1], b: [3, 2] }));
  assert.deepEqual(changes.at(-1)!.names, ["b"]);
  assert.equal(state.id, 5);
});

test("a prefix selects fields; another one starts again", async () => {
  const { channel, state } = await subscribed();
  FakeSocket.last.receive(page(10, { "seat/1": [1, 1] }));
  void channel.subscribe({ state: "seat/" });
  await settle();
  assert.equal(FakeSocket.last.subscribed({ id: 10 }).state, "seat/");
  assert.equal(state.complete, false);
  FakeSocket.last.receive(page(10, { "seat/1": [1, 1] }));
  assert.equal(state.size, 1);
});

test("pages of the prefix before do not count for the new one", async () => {
  const { socket, channel, state } = await subscribed();
  socket.receive(page(10, { "seat/1": [1, 1] }));
  void channel.subscribe({ state: "seat/" });
  await settle();
  // A gap was under way, and its pages are those of all fields.
  socket.receive({ type: "gap", channel: "c", after: 10, id: 20 }, page(20, { turn: [15, 1] }));
  assert.equal(state.complete, false);
  const next = await reconnect(); // before the answer
  assert.deepEqual(pick(next.subscribed({ recovered: true })), { after: 20, held: undefined });
  next.receive(page(20, { "seat/1": [1, 1] }));
  assert.deepEqual([...state.keys()], ["seat/1"]);
});

test("after the end, ready rejects", async () => {
  const { sb } = await connected();
  const channel = sb.channel("c", { subscribe: false });
  await sb.close();
  await assert.rejects(channel.state.ready(), { code: "closed" });
  await assert.rejects(
    channel.transact((s) => void (s["a"] = 1)),
    { code: "closed" },
  );
});

function pick(m: { [member: string]: unknown }) {
  return { after: m["after"], held: m["held"] };
}
