import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Channel } from "../src/index.js";
import { connected, reconnect, settle, stopClock } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

const made = (id: number) => ({ type: "subscribed", channel: "c", id });
const message = (id: number) => ({ type: "message", channel: "c", id, data: id });

test("a channel that the backend has subscribed is kept over reconnects, until it ends it", async () => {
  const { sb, socket } = await connected();
  const seen: unknown[] = [];
  sb.on("subscribed", (channel: Channel) => {
    seen.push(`subscribed ${channel.name} ${channel.position}`);
    channel.on("message", (data) => seen.push(data));
    channel.on("unsubscribed", ({ code }) => seen.push(code));
  });
  socket.receive(made(10), message(11));
  await settle();
  assert.equal(socket.types, ""); // it need not subscribe
  const next = await reconnect();
  next.receive(made(13), message(14)); // it comes again after the answer
  assert.equal(next.subscribed({ id: 14, recovered: true }).after, 11);
  next.receive(message(12), message(13), message(14));
  next.receive({ type: "unsubscribed", channel: "c", code: "forbidden", message: "the backend ended it" });
  await settle();
  assert.deepEqual(seen, ["subscribed c 10", 11, 12, 13, 14, "forbidden"]);
  assert.equal((await reconnect()).types, "");
});

test("a channel with a position, or with the state, subscribes by itself when the backend has subscribed it", async () => {
  const { sb, socket } = await connected();
  const channel = sb.channel("c", { subscribe: false, after: 5, state: true });
  socket.receive(made(10), message(11));
  await settle();
  const asked = socket.subscribed({ recovered: true });
  assert.deepEqual([asked.after, asked["state"]], [5, true]);
  const seen: unknown[] = [];
  channel.on("message", (data) => seen.push(data));
  socket.receive(message(6));
  await settle();
  assert.deepEqual(seen, [6]);
});

test("the backend may subscribe a channel that the client wants already", async () => {
  const { sb, socket } = await connected();
  let events = 0;
  sb.on("subscribed", () => events++);
  const channel = sb.channel("c");
  await settle();
  socket.receive(made(9));
  socket.subscribed();
  socket.receive(made(12), message(11));
  await settle();
  assert.equal(events, 0);
  assert.equal(channel.position, 11);
});
