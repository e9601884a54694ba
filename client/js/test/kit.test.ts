import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Holds, Rooms, Scenes } from "../src/kit/index.js";
import { FakeSocket, connected, settle, stopClock } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

/** Answers the next subscribe, with a state without fields. */
async function subscribed(channel: string): Promise<void> {
  await settle();
  FakeSocket.last.subscribed({ channel });
  FakeSocket.last.receive({ type: "state", channel, id: 10, first: true, fields: {} });
  await settle();
}

const refusal = { type: "error", code: "conflict", message: "it is in another scene" };

test("a refused enter ends the subscription that it began", async () => {
  const { sb, socket } = await connected();
  const entered = new Scenes(sb).enter("zoe", "town");
  await subscribed("scene:town");
  socket.answer("request", refusal);
  await assert.rejects(entered, { code: "conflict" });
  assert.equal(socket.take("unsubscribe").channel, "scene:town");
});

test("an enter whose outcome is unknown ends it, also on the next connection", async () => {
  const { sb, socket } = await connected();
  const entered = new Scenes(sb).transfer("zoe", "town");
  await subscribed("scene:town");
  socket.end();
  await assert.rejects(entered, { code: "unknown_outcome" });
  assert.equal(sb.channel("scene:town", { subscribe: false })._wanted, false);
});

for (const [when, before] of [
  ["before", true],
  ["during", false],
] as const) {
  test(`a refused enter keeps a subscription that the application made ${when} the call`, async () => {
    const { sb, socket } = await connected();
    if (before) sb.channel("scene:town");
    const entered = new Scenes(sb).enter("zoe", "town");
    if (!before) sb.channel("scene:town");
    await subscribed("scene:town");
    socket.answer("request", refusal);
    await assert.rejects(entered, { code: "conflict" });
    assert.equal(socket.types, "");
  });
}

test("a refused enter keeps the subscription of another view", async () => {
  const { sb, socket } = await connected();
  const scenes = new Scenes(sb);
  const entered = [scenes.enter("zoe", "town"), scenes.enter("max", "town")];
  await subscribed("scene:town");
  socket.answer("request", refusal);
  socket.answer("request", { type: "reply", data: {} });
  await assert.rejects(entered[0]!, { code: "conflict" });
  const scene = await entered[1]!;
  assert.equal(socket.types, "");
  void scene.close();
  void scene.close();
  assert.equal(socket.types, "unsubscribe");
});

test("unsubscribe ends it for all views, and an old view ends no later subscription", async () => {
  const { sb, socket } = await connected();
  const seats = new Holds(sb).seats("play");
  await subscribed("hold:play");
  void sb.channel("hold:play").unsubscribe();
  sb.channel("hold:play");
  await settle();
  void seats.close();
  assert.equal(socket.types, "unsubscribe subscribe");
});

test("a view that was refused before anything waited for it is not ready", async () => {
  const { sb, socket } = await connected();
  const seats = new Holds(sb).seats("play");
  await settle();
  socket.answer("subscribe", { type: "error", code: "forbidden", message: "no" });
  await assert.rejects(seats.ready(), { code: "forbidden" });
});

const joined = { type: "reply", data: { room: "r", channel: "room:r", n: 2 } };

test("a join and its subscription are one round trip", async () => {
  const { sb, socket } = await connected();
  const joining = new Rooms(sb).join("r", { nickname: "Amy" });
  await settle();
  assert.equal(socket.types, "request subscribe");
  socket.answer("request", joined);
  await subscribed("room:r");
  const room = await joining;
  assert.deepEqual([room.id, room.n], ["r", 2]);
  assert.equal(socket.types, "");
  void room.close();
  assert.equal(socket.types, "unsubscribe");
});

test("a create with an id is one round trip, without one two", async () => {
  const { sb, socket } = await connected();
  const made = new Rooms(sb).create({ mode: "battle", id: "r" });
  await settle();
  assert.equal(socket.types, "request subscribe");
  socket.answer("request", { type: "reply", data: { id: "r", channel: "room:r", n: 1, code: "x" } });
  await subscribed("room:r");
  assert.equal((await made).code, "x");
  const other = new Rooms(sb).create({ mode: "battle" });
  await settle();
  assert.equal(socket.types, "request");
  socket.answer("request", { type: "reply", data: { id: "s", channel: "room:s", n: 1 } });
  await subscribed("room:s");
  assert.equal((await other).id, "s");
});

test("a refused join ends the subscription that it began, or that the broker refused", async () => {
  const { sb, socket } = await connected();
  for (const begun of [true, false]) {
    const joining = new Rooms(sb).join("r", { code: "wrong" });
    await settle();
    socket.answer("request", { type: "error", code: "bad_code", message: "wrong" });
    await assert.rejects(joining, { code: "bad_code" });
    if (begun) await subscribed("room:r");
    else socket.answer("subscribe", { type: "error", code: "forbidden", message: "no" });
    await settle();
    assert.equal(socket.take("unsubscribe").channel, "room:r");
    assert.equal(sb.channel("room:r", { subscribe: false })._wanted, false);
  }
});

test("a refused join keeps a subscription of the application", async () => {
  const { sb, socket } = await connected();
  sb.channel("room:r");
  const joining = new Rooms(sb).join("r");
  await subscribed("room:r");
  socket.answer("request", { type: "error", code: "full", message: "full" });
  await assert.rejects(joining, { code: "full" });
  assert.equal(socket.types, "");
});

test("a join whose subscription arrived first subscribes again", async () => {
  const { sb, socket } = await connected();
  const joining = new Rooms(sb).join("r");
  await settle();
  socket.answer("subscribe", { type: "error", code: "forbidden", message: "no" });
  await settle();
  socket.answer("request", joined);
  await subscribed("room:r");
  assert.equal((await joining).n, 2);
});

test("a join whose outcome is open keeps following, and the next one continues", async () => {
  const { sb, socket } = await connected();
  const rooms = new Rooms(sb);
  const joining = rooms.join("r");
  await subscribed("room:r");
  socket.answer("request", { type: "error", code: "unavailable", message: "later" });
  await assert.rejects(joining, { code: "unavailable" });
  assert.equal(socket.types, "");
  const again = rooms.join("r");
  await settle();
  socket.answer("request", joined);
  const room = await again;
  assert.equal(socket.types, "");
  void room.close();
  assert.equal(socket.types, "unsubscribe");
});
