import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { FakeSocket, connected, dialled, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

/** A storage with the methods of localStorage. */
function memory() {
  const values = new Map<string, string>();
  return {
    values,
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => void values.set(key, value),
  };
}

test("the next process continues where the handlers of the last one were", async () => {
  const storage = memory();
  const { sb, socket } = await connected({ storage });
  const hold: (() => void)[] = [];
  sb.inbox.on("message", () => {});
  sb.channel("c").on("message", (data) =>
    data === 12 ? new Promise<void>((resolve) => hold.push(resolve)) : undefined,
  );
  await settle();
  socket.subscribed();
  socket.receive({ type: "message", id: 5, data: 5 }, { type: "message", channel: "$all", id: 101, data: 1 });
  socket.receive(
    { type: "message", channel: "c", id: 11, data: 11 },
    { type: "message", channel: "c", id: 12, data: 12 },
  );
  await settle();
  tick(100);
  const name = JSON.parse(storage.values.get("switchboard")!).name as string;

  const next = await dialled({ storage }); // the first process was killed
  const seen: unknown[] = [];
  next.sb.inbox.on("message", (data) => seen.push(data));
  next.sb.channel("c");
  await settle();
  const hello = FakeSocket.last.connect();
  assert.deepEqual([hello.client, hello.after], [name, 101]);
  assert.equal(FakeSocket.last.take("ack").id, 5);
  assert.equal(FakeSocket.last.subscribed({ recovered: true }).after, 11);
  FakeSocket.last.receive({ type: "message", id: 5, data: 5 }, { type: "message", id: 6, data: 6 });
  await settle();
  assert.deepEqual(seen, [6]);
});

test("the secret is kept; another client option starts anew", async () => {
  const storage = memory();
  const first = await dialled({ storage });
  const { client, secret } = FakeSocket.last.connect({ client: "c-kept" });
  await first.sb.close();
  await dialled({ storage });
  const second = FakeSocket.last.connect({ client: "c-kept" });
  assert.deepEqual([second.client, second.secret], ["c-kept", secret]);
  assert.notEqual(client, undefined);
  await dialled({ storage, client: "phone" });
  const third = FakeSocket.last.connect({ client: "phone" });
  assert.equal(third.client, "phone");
  assert.notEqual(third.secret, secret);
});

test("a storage with get and set, that is asynchronous", async () => {
  const values = new Map<string, string>();
  const storage = {
    get: async (key: string) => values.get(key),
    set: async (key: string, value: string) => void values.set(key, value),
  };
  const { sb } = await connected({ storage, storageKey: "mine" });
  await sb.close();
  assert.match(values.get("mine")!, /"client":"c-1"/);
});

test("a channel without a message since the start keeps its position when the client is closed", async () => {
  const storage = memory();
  storage.setItem("switchboard", JSON.stringify({ channels: { c: 11, d: 12 } }));
  const kept = () => JSON.parse(storage.values.get("switchboard")!).channels as unknown;
  const { sb, socket } = await connected({ storage });
  sb.channel("c");
  await settle();
  assert.equal(socket.subscribed({ recovered: true }).after, 11);
  assert.equal(sb.channel("c").position, 11);
  sb.channel("d"); // its subscription is not sent yet
  await sb.close();
  assert.deepEqual(kept(), { c: 11, d: 12 });
});

test("an unsubscribed channel is forgotten", async () => {
  const storage = memory();
  const { sb, socket } = await connected({ storage });
  const channel = sb.channel("c");
  await settle();
  socket.subscribed();
  void channel.unsubscribe();
  await sb.close();
  assert.deepEqual(JSON.parse(storage.values.get("switchboard")!).channels, {});
});

test("an unsubscribed channel starts anew, also in the next process", async () => {
  const storage = memory();
  storage.setItem("switchboard", JSON.stringify({ asked: "auto", channels: { c: 5, d: 6 } }));
  const { sb, socket } = await connected({ storage });
  const channel = sb.channel("c");
  sb.channel("d", { subscribe: false });
  await settle();
  assert.equal(socket.subscribed({ recovered: true }).after, 5);
  void channel.unsubscribe();
  void channel.subscribe();
  await settle();
  assert.equal(socket.take("subscribe").after, undefined);
  tick(100);
  assert.deepEqual(JSON.parse(storage.values.get("switchboard")!).channels, { d: 6 });
});

test("positions of channels that are not used any more are forgotten", async () => {
  const storage = memory();
  const day = 86_400_000;
  const now = Date.now();
  const used: Record<string, number> = {
    old: now - 31 * day,
    kept: now - 29 * day,
    held: now - 31 * day,
    ahead: now + 99 * day,
  };
  const channels: Record<string, number> = { old: 1, kept: 2, held: 3, ahead: 4, unknown: 5 };
  storage.setItem("switchboard", JSON.stringify({ asked: "auto", name: "tab", secret: "s", channels, used }));
  const { sb, socket } = await connected({ storage });
  sb.channel("held");
  await settle();
  assert.equal(socket.subscribed({ recovered: true }).after, 3);
  await sb.close();
  const kept = JSON.parse(storage.values.get("switchboard")!) as Record<string, unknown>;
  assert.deepEqual(kept["channels"], { held: 3, kept: 2, ahead: 4, unknown: 5 });
  assert.deepEqual(kept["used"], { held: now, kept: now - 29 * day, ahead: now, unknown: now });
  assert.equal(kept["secret"], "s");
});

test("of many channels, the least recently used are forgotten, but not those of the last week", async () => {
  const storage = memory();
  const stored = async (age: number) => {
    const names = Array.from({ length: 1200 }, (_, i) => `c${i}`);
    const channels = Object.fromEntries(names.map((name, i) => [name, i]));
    const used = Object.fromEntries(names.map((name, i) => [name, Date.now() - age - i]));
    storage.setItem("switchboard", JSON.stringify({ asked: "auto", channels, used }));
    const { sb, socket } = await connected({ storage });
    sb.channel("c1199");
    await settle();
    socket.subscribed({ recovered: true });
    await sb.close();
    return Object.keys((JSON.parse(storage.values.get("switchboard")!) as { channels: object }).channels);
  };
  assert.equal((await stored(6 * 86_400_000)).length, 1200);
  const left = await stored(8 * 86_400_000);
  assert.deepEqual(
    [left.length, left.includes("c999"), left.includes("c1000"), left.includes("c1199")],
    [1001, true, false, true],
  );
});

test("a channel may have the name of a member of objects", async () => {
  const storage = memory();
  storage.setItem("switchboard", '{"channels":{}}');
  const { sb, socket } = await connected({ storage });
  sb.channel("constructor");
  sb.channel("__proto__");
  await settle();
  assert.deepEqual([socket.subscribed().after, socket.subscribed().after], [undefined, undefined]);
});

test("nothing is written before the storage is read", async () => {
  const written: string[] = [];
  let read!: (text: string) => void;
  const storage = {
    get: () => new Promise<string>((resolve) => (read = resolve)),
    set: (_: string, text: string) => written.push(text),
  };
  const { sb } = await dialled({ storage });
  await sb.channel("c").unsubscribe();
  tick(100);
  assert.deepEqual(written, []);
  read('{"asked":"auto","name":"kept"}');
  await settle();
  assert.equal(FakeSocket.last.connect().client, "kept");
});

test("what is stored may be anything", async () => {
  for (const text of ["null", "{}"]) {
    const { sb } = await connected({ storage: { getItem: () => text, setItem: () => {} } });
    assert.equal(sb.phase, "connected");
  }
});

test("a storage that fails is an error, and nothing else", async () => {
  const storage = {
    getItem: () => "{",
    setItem: () => {
      throw new Error("quota");
    },
  };
  const { sb, errors } = await connected({ storage });
  await sb.close();
  assert.equal(errors.length, 2);
});

test("a storage that cannot be read, or does not answer, is not written", async () => {
  for (const get of [() => Promise.reject(new Error("locked")), () => new Promise<string>(() => {})]) {
    const written: string[] = [];
    const storage = { get, set: (_: string, text: string) => written.push(text) };
    const { sb, errors } = await dialled({ storage, connectTimeout: 60_000 });
    tick(10_000);
    await settle();
    FakeSocket.last.connect();
    await sb.close();
    assert.deepEqual([errors.length, written], [1, []]);
  }
});
