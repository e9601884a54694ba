import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { SwitchboardError } from "../src/index.js";
import { signToken } from "../src/server/index.js";
import { FakeSocket, connected, dialled, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

const circular: Record<string, unknown> = {};
circular["self"] = circular;
const throwing = {
  toJSON() {
    throw new Error("no JSON today");
  },
};

test("data that is no JSON rejects its own call only", async () => {
  const { sb, socket, errors } = await connected();
  const c = sb.channel("c", { subscribe: false });
  for (const [bad, why] of [
    [{ a: 1n }, /BigInt/],
    [circular, /circular/],
    [throwing, /no JSON today/],
  ] as const) {
    const calls: [string, () => Promise<unknown>][] = [
      ["publish", () => c.publish(bad)],
      ["publish", () => c.publish(bad, { key: true })],
      ["publish", () => c.update({ set: { f: bad } })],
      ["publish", () => c.set("f", bad)],
      ["publish", () => c.set("f", 1, { data: bad })],
      ["publish", () => c.add("f", bad as never)],
      ["request", () => sb.request(bad)],
      ["request", () => sb.call("m", bad)],
      ["history", () => c.history({ after: bad as never })],
      ["presence", () => c.presence({ cursor: bad as never })],
      ["state", () => c.readState({ prefix: bad as never })],
      ["refresh", () => sb.refresh(bad as never)],
    ];
    for (const [what, call] of calls) {
      const error = (await call().then(
        () => assert.fail(what),
        (error: unknown) => error,
      )) as SwitchboardError;
      assert.ok(error instanceof SwitchboardError, String(error));
      assert.deepEqual([error.code, error.retryable], ["bad_request", false]);
      assert.match(error.message, why);
      assert.ok(error.message.startsWith(`${what}: `), error.message);
      assert.ok(error.cause instanceof Error);
    }
    assert.throws(() => c.here(bad), { code: "bad_request", message: why });
  }
  const good = c.publish({ a: 1 });
  assert.equal(socket.types, "publish");
  socket.answer("publish", { type: "published", id: 1 });
  assert.equal((await good).id, 1);
  assert.deepEqual(errors, []);
  await sb.close();
});

test("data that is no JSON ends nothing before the connection is open", async () => {
  const { sb } = await dialled();
  const c = sb.channel("c", { subscribe: false });
  await assert.rejects(c.publish(circular), { code: "bad_request" });
  assert.throws(() => c.here(circular), { code: "bad_request" });
  const good = c.publish(1);
  FakeSocket.last.connect();
  assert.equal(FakeSocket.last.types, "publish");
  FakeSocket.last.answer("publish", { type: "published", id: 1 });
  await good;
});

test("data is what it was when the call was made", async () => {
  const { sb } = await dialled();
  const data = { n: 1 };
  const published = sb.channel("c", { subscribe: false }).publish(data);
  data.n = 2;
  FakeSocket.last.connect();
  assert.deepEqual(FakeSocket.last.answer("publish", { type: "published", id: 1 }).data, { n: 1 });
  await published;
});

test("a transaction whose result is no JSON fails alone", async () => {
  const { sb, socket } = await connected();
  const c = sb.channel("c", { state: true });
  await settle();
  socket.subscribed();
  socket.receive({ type: "state", channel: "c", id: 10, first: true, fields: { f: [9, { n: 1 }] } });
  await assert.rejects(
    c.transact((s) => {
      (s["f"] as { n: unknown }).n = 1n;
    }),
    { code: "bad_request", message: /BigInt/ },
  );
  await assert.rejects(
    c.transact((s) => {
      s["g"] = circular as never;
    }),
    { code: "bad_request", message: /circular/ },
  );
  assert.equal(socket.types, "");
});

test("a value that is shown is that of the call", async () => {
  const { sb, socket } = await connected();
  const c = sb.channel('c"', {});
  const value = { x: 1 };
  c.here(value);
  value.x = 2;
  await settle();
  socket.subscribed();
  assert.deepEqual(socket.take("here"), { type: "here", channel: 'c"', data: { x: 1 } });
  c.here(undefined as never);
  tick(50);
  assert.equal(socket.take("here").data, null);
});

test("what a broken server sends is ignored", async () => {
  const { sb, socket, errors } = await connected();
  for (const text of ["null", "1", '"x"', "[]", "{}", '{"type":null}', "<html>", ""]) socket.onmessage!({ data: text });
  assert.equal(sb.phase, "connected");
  assert.deepEqual(errors, []);
});

test("claims of a token that are no JSON are named", async () => {
  await assert.rejects(signToken("x".repeat(32), { sub: "amy", info: { n: 1n as never } }), {
    code: "bad_request",
    message: /^the token: .*BigInt/,
  });
});
