import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { FakeSocket, connected, dialled, reconnect, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

const message = (id: number) => ({ type: "message", id, data: id });

test("a message is acknowledged when its handler has resolved", async () => {
  const { sb, socket } = await connected();
  const release: (() => void)[] = [];
  const seen: unknown[] = [];
  sb.inbox.on("message", (data) => {
    seen.push(data);
    return new Promise<void>((resolve) => release.push(resolve));
  });
  socket.receive(message(1), message(2), message(2));
  await settle();
  assert.deepEqual([seen, socket.types], [[1], ""]);
  release[0]!();
  await settle();
  assert.deepEqual(seen, [1, 2]);
  tick(100);
  assert.equal(socket.take("ack").id, 1);
  release[1]!();
  await settle();
  assert.equal(socket.take("ack").id, 2);
});

test("a message whose handler fails comes again, in order, and only to the handler that failed", async () => {
  const { sb, socket, errors } = await connected({ pingAfter: 1e9 });
  const seen: string[] = [];
  sb.inbox.on("message", (data) => void seen.push(`good ${data}`));
  let fail = true;
  sb.inbox.on("message", async (data) => {
    seen.push(`bad ${data}`);
    if (fail) throw new Error("not now");
  });
  socket.receive(message(1), message(2));
  await settle();
  assert.deepEqual(seen, ["good 1", "bad 1"]);
  assert.equal(errors.length, 1);
  const next = await reconnect();
  next.receive(message(1), message(2)); // they were not acknowledged
  await settle();
  fail = false;
  tick(30_000);
  await settle();
  assert.deepEqual([...new Set(seen)], ["good 1", "bad 1", "good 2", "bad 2"]);
  assert.equal(seen.filter((call) => call.startsWith("good")).length, 2);
  assert.equal(seen.filter((call) => call === "bad 2").length, 1);
  assert.equal(next.sent.filter((m) => m.type === "ack").at(-1)?.id, 2);
});

test("without a handler, messages wait unacknowledged", async () => {
  const { sb, socket } = await connected();
  socket.receive(message(1));
  await settle();
  assert.equal(socket.types, "");
  const seen: unknown[] = [];
  sb.inbox.on("message", (data) => seen.push(data));
  await settle();
  assert.deepEqual(seen, [1]);
  assert.equal(socket.take("ack").id, 1);
});

test("many messages are acknowledged together", async () => {
  const { sb, socket } = await connected();
  sb.inbox.on("message", () => {});
  for (let id = 1; id <= 200; id++) socket.receive(message(id));
  await settle();
  const acks = socket.sent.map((m) => m.id);
  assert.ok(acks.length < 10, `${acks.length} acks`);
  assert.equal(acks.at(-1), 200);
});

test("a lost acknowledgement is sent again, and the message is not handled again", async () => {
  const { sb, socket } = await connected();
  const seen: unknown[] = [];
  sb.inbox.on("message", (data) => seen.push(data));
  socket.receive(message(1));
  await settle();
  const next = await reconnect();
  assert.equal(next.take("ack").id, 1);
  next.receive(message(1));
  assert.equal(next.take("ack").id, 1);
  assert.deepEqual(seen, [1]);
});

test("another client id has another queue", async () => {
  const { sb, socket } = await connected();
  const seen: unknown[] = [];
  sb.inbox.on("message", (data) => seen.push(data));
  socket.receive(message(50));
  await settle();
  socket.end();
  tick(20_000);
  await settle();
  FakeSocket.last.connect({ client: "c-2" });
  assert.equal(FakeSocket.last.types, "");
  FakeSocket.last.receive(message(3));
  await settle();
  assert.deepEqual(seen, [50, 3]);
  assert.equal(FakeSocket.last.take("ack").id, 3);
});

test("a gap is reported once, and acknowledged", async () => {
  const { sb, socket } = await connected();
  const gaps: unknown[] = [];
  sb.inbox.on("gap", (gap) => gaps.push(gap));
  socket.receive({ type: "gap", after: 0, id: 7 });
  await settle();
  assert.equal(socket.take("ack").id, 7);
  const next = await reconnect();
  next.receive({ type: "gap", after: 0, id: 7 });
  assert.deepEqual(gaps, [{ after: 0, id: 7 }]);
});

test("with ack auto, a message is acknowledged when all its handlers have ended, even if one has failed", async () => {
  const { sb, socket, errors } = await connectedAuto();
  const release: (() => void)[] = [];
  const seen: unknown[] = [];
  sb.inbox.on("message", (data) => {
    seen.push(data);
    return new Promise<void>((resolve) => release.push(resolve));
  });
  sb.inbox.on("message", () => {
    throw new Error("no");
  });
  socket.receive(message(1), message(2)); // if the page closed now, both would come again
  await settle();
  tick(1000);
  assert.deepEqual([seen, socket.types], [[1], ""]);
  release[0]!();
  await settle();
  tick(100);
  assert.deepEqual([seen, socket.take("ack").id, errors.length], [[1, 2], 1, 1]);
  const next = await reconnect();
  assert.equal(next.take("ack").id, 1);
  next.receive(message(2));
  release[1]!();
  await settle();
  assert.deepEqual([seen, next.sent.filter((m) => m.type === "ack").at(-1)?.id], [[1, 2], 2]);
});

/** Returns a connected client with `ack: "auto"`. The client acknowledges, not the broker: connect has no `ack`. */
async function connectedAuto() {
  const client = await dialled({ ack: "auto", pingAfter: 1e9 });
  assert.equal(FakeSocket.last.connect().ack, undefined);
  return { ...client, socket: FakeSocket.last };
}

test("a closing without reconnect, after messages, ends the client without an error", async () => {
  const { sb, socket, errors } = await connected({ client: "phone" });
  sb.inbox.on("message", () => {});
  socket.receive(message(1));
  await settle();
  socket.receive({ type: "closing", code: "disconnected", reconnect: false });
  assert.deepEqual([sb.phase, errors], ["closed", []]);
});

test("close acknowledges what is handled, and calls no handler again", async () => {
  const { sb, socket } = await connected();
  let calls = 0;
  sb.inbox.on("message", (data) => {
    calls++;
    if (data === 2) throw new Error("no");
  });
  socket.receive(message(1), message(2));
  await settle();
  await sb.close();
  assert.equal(socket.sent.filter((m) => m.type === "ack").at(-1)?.id, 1);
  tick(60_000);
  await settle();
  assert.equal(calls, 2);
});
