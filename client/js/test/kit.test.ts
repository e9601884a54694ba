import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Holds, Scenes } from "../src/kit/index.js";
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
