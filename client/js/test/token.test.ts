import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { SignedOutError, type SwitchboardError } from "../src/index.js";
import { FakeSocket, dialled, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

/**
 * A token that was signed now on a clock that is `skew` seconds ahead, and lives for `life`
 * seconds.
 */
function token(life: number, skew = 0, claims = {}): string {
  const iat = Date.now() / 1000 + skew;
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "HS256" })}.${part({ sub: "zoë", iat, exp: iat + life, ...claims })}.sig`;
}

for (const skew of [0, 3600, -3600]) {
  test(`a token is renewed at four fifths of its life, with a clock that is wrong by ${skew} s`, async () => {
    let asked = 0;
    const { errors } = await dialled({ token: () => (asked++, token(300, skew)), pingAfter: 1e9 });
    FakeSocket.last.connect();
    tick(239_000);
    await settle();
    assert.equal(asked, 1);
    tick(1_000);
    await settle();
    assert.equal(asked, 2);
    FakeSocket.last.answer("refresh", { type: "refreshed" });
    await settle();
    tick(240_000);
    await settle();
    assert.equal(asked, 3);
    assert.deepEqual(errors, []);
  });
}

test("a token without an end is not renewed, and is kept over reconnects", async () => {
  let asked = 0;
  await dialled({ token: async () => `opaque-${++asked}` });
  assert.equal(FakeSocket.last.connect().token, "opaque-1");
  FakeSocket.last.end();
  tick(20_000);
  await settle();
  assert.equal(FakeSocket.last.connect().token, "opaque-1");
});

test("an expired token is replaced, and a refused one that was accepted before", async () => {
  for (const code of [4004, 4003]) {
    let asked = 0;
    const { sb } = await dialled({ token: () => `t${++asked}` });
    FakeSocket.last.connect();
    FakeSocket.last.end(code);
    tick(20_000);
    await settle();
    assert.equal(FakeSocket.last.connect().token, "t2");
    await sb.close();
  }
});

test("a new token that is refused is final, and so is the end of a fixed one", async () => {
  const { sb } = await dialled({ token: () => "bad" });
  FakeSocket.last.onopen!();
  FakeSocket.last.receive({ type: "closing", code: "unauthorized", reconnect: false });
  assert.equal(sb.phase, "closed");
  const fixed = await dialled({ token: "fixed" });
  FakeSocket.last.connect();
  FakeSocket.last.receive({ type: "closing", code: "expired", reconnect: true });
  assert.equal(fixed.sb.phase, "closed");
});

test("a failure of the token function is an error, and is tried again", async () => {
  let asked = 0;
  const { sb, errors } = await dialled({
    token: () => {
      if (++asked === 1) throw new Error("offline");
      return "t";
    },
  });
  const error = errors[0] as SwitchboardError;
  assert.equal(error.code, "token");
  assert.equal((error.cause as Error).message, "offline");
  assert.equal(sb.phase, "waiting");
  tick(20_000);
  await settle();
  assert.equal(FakeSocket.last.connect().token, "t");
});

test("a token function that never settles is called again", async () => {
  let asked = 0;
  const { sb, errors } = await dialled({ token: () => (++asked > 1 ? "t" : new Promise<string>(() => {})) });
  tick(29_999);
  await settle();
  assert.deepEqual([sb.phase, errors], ["connecting", []]);
  tick(1);
  await settle();
  const error = errors[0] as SwitchboardError;
  assert.deepEqual([error.code, (error.cause as SwitchboardError).code, sb.phase], ["token", "timeout", "waiting"]);
  tick(20_000);
  await settle();
  assert.equal(FakeSocket.last.connect().token, "t");
});

test("a renewal that never settles is tried again, and the connection stays", async () => {
  let asked = 0;
  const { sb, errors } = await dialled({
    token: () => (++asked === 2 ? new Promise<string>(() => {}) : token(300)),
    pingAfter: 1e9,
  });
  FakeSocket.last.connect();
  tick(240_000);
  await settle();
  tick(30_000);
  await settle();
  assert.deepEqual([(errors[0] as SwitchboardError).code, sb.phase], ["token", "connected"]);
  tick(30_000);
  await settle();
  FakeSocket.last.answer("refresh", { type: "refreshed" });
  assert.equal(asked, 3);
});

test("a token function without a limit may take its time", async () => {
  let answer!: (token: string) => void;
  await dialled({ token: () => new Promise<string>((resolve) => (answer = resolve)), tokenTimeout: 0 });
  tick(3_600_000);
  await settle();
  answer("t");
  await settle();
  assert.equal(FakeSocket.last.connect().token, "t");
});

test("a token function that returns no token is called again, and nothing connects", async () => {
  for (const text of [undefined as unknown as string, "Bad Gateway", "<html></html>", '{"error":"busy"}']) {
    let asked = 0;
    const before = FakeSocket.count;
    const { sb, errors } = await dialled({ token: () => (++asked > 1 ? "a.b-c_d~e+f/g==" : text) });
    assert.deepEqual([(errors[0] as SwitchboardError).code, sb.phase, FakeSocket.count], ["token", "waiting", before]);
    tick(20_000);
    await settle();
    assert.equal(FakeSocket.last.connect().token, "a.b-c_d~e+f/g==");
  }
});

test("a token function can end it", async () => {
  const { sb } = await dialled({ token: () => Promise.reject(new SignedOutError("bye")) });
  assert.equal(sb.phase, "closed");
});

test("a refused renewal is an error, and is tried again", async () => {
  const { sb, errors } = await dialled({ token: () => token(100), pingAfter: 1e9 });
  FakeSocket.last.connect();
  tick(80_000);
  await settle();
  FakeSocket.last.answer("refresh", { type: "error", code: "unavailable", message: "later" });
  await settle();
  assert.equal((errors[0] as SwitchboardError).code, "unavailable");
  tick(30_000);
  await settle();
  FakeSocket.last.answer("refresh", { type: "refreshed" });
  assert.equal(sb.phase, "connected");
});

test("a token for one client names it", async () => {
  await dialled({ token: token(300, 0, { client: "phone" }) });
  assert.equal(FakeSocket.last.connect({ client: "zoë/phone" }).client, undefined);
});

test("the name that another token gave is not sent with a token for one client", async () => {
  const storage = { getItem: () => '{"asked":"auto","name":"tablet"}', setItem: () => {} };
  await dialled({ storage, token: token(300, 0, { client: "phone" }) });
  assert.equal(FakeSocket.last.connect({ client: "zoë/phone" }).client, undefined);
});

test("two tabs with a token for one client do not supersede each other without end", async () => {
  const { sb } = await dialled({ token: token(300, 0, { client: "phone" }) });
  FakeSocket.last.connect({ client: "zoë/phone" });
  FakeSocket.last.end(4002);
  assert.equal(sb.phase, "closed");
});

test("refresh replaces the token", async () => {
  const { sb } = await dialled({ token: "old" });
  FakeSocket.last.connect();
  const refreshed = sb.refresh("new");
  assert.equal(FakeSocket.last.answer("refresh", { type: "refreshed" }).token, "new");
  await refreshed;
  FakeSocket.last.end();
  tick(20_000);
  await settle();
  assert.equal(FakeSocket.last.connect().token, "new");
});
