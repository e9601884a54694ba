import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Switchboard } from "../src/index.js";
import { FakeSocket, connected, reconnect, settle, stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

async function watched(sb: Switchboard) {
  const channel = sb.channel("c", { presence: true });
  const seen: string[] = [];
  channel.members.on("join", (m) => seen.push(`+${m.client}`));
  channel.members.on("leave", (m) => seen.push(`-${m.client}`));
  channel.members.on("here", (value, m) => seen.push(`${m.client}=${JSON.stringify(value)}`));
  await settle();
  FakeSocket.last.subscribed();
  return { channel, members: channel.members, seen };
}

const names = (members: Iterable<{ client: string }>) => [...members].map((m) => m.client).sort();

test("members are the pages, and then joins and leaves", async () => {
  const { sb, socket } = await connected();
  const { members, seen } = await watched(sb);
  socket.receive({ type: "leave", channel: "c", client: "b" }, { type: "join", channel: "c", client: "d", user: "u" });
  socket.answer("presence", { type: "presence", count: 3, clients: [{ client: "a" }, { client: "b" }], next: "2" });
  await settle();
  assert.equal(
    socket.answer("presence", { type: "presence", count: 3, clients: [{ client: "c", here: 5 }] }).cursor,
    "2",
  );
  await settle();
  assert.deepEqual(names(members), ["a", "c", "d"]);
  assert.equal(members.get("d")?.user, "u");
  assert.equal(members.complete, true);
  socket.receive(
    { type: "here", channel: "c", client: "d", data: { x: 1 } },
    { type: "here", channel: "c", client: "c", data: null },
  );
  socket.receive({ type: "here", channel: "c", client: "unknown", data: 1 });
  assert.deepEqual(seen, ["+a", "+b", "+c", "c=5", "-b", "+d", 'd={"x":1}', "c=undefined"]);
});

test("after a reconnect only the differences are events", async () => {
  const { sb, socket } = await connected();
  const { members, seen } = await watched(sb);
  socket.answer("presence", { type: "presence", count: 2, clients: [{ client: "a" }, { client: "b" }] });
  await settle();
  const next = await reconnect();
  next.subscribed({ recovered: true });
  assert.deepEqual(names(members), ["a", "b"]);
  next.answer("presence", { type: "presence", count: 2, clients: [{ client: "b" }, { client: "c" }] });
  await settle();
  assert.deepEqual(seen, ["+a", "+b", "-a", "+c"]);
});

test("a large channel has counts, and combined changes", async () => {
  const { sb, socket } = await connected();
  const { members, seen } = await watched(sb);
  socket.answer("presence", { type: "presence", count: 1, clients: [{ client: "a" }] });
  await settle();
  socket.receive({ type: "presence", channel: "c", count: 250, joined: [{ client: "b" }], left: [{ client: "a" }] });
  assert.deepEqual([members.count, members.complete, names(members)], [250, false, ["b"]]);
  socket.receive({ type: "presence", channel: "c", count: 1, clients: [{ client: "z" }] });
  assert.deepEqual([members.count, members.complete, names(members)], [1, true, ["z"]]);
  assert.deepEqual(seen, ["+a", "-a", "+b", "-b", "+z"]);
});

test("an event that repeats a page changes nothing", async () => {
  const { sb, socket } = await connected();
  const { members, seen } = await watched(sb);
  const clients = [{ client: "a" }, { client: "b", here: 5 }, { client: sb.client! }];
  socket.answer("presence", { type: "presence", count: 3, clients });
  await settle();
  const before = seen.splice(0);
  socket.receive({ type: "presence", channel: "c", count: 3, joined: [{ client: "b" }], left: [{ client: "gone" }] });
  socket.receive({ type: "join", channel: "c", client: "a" }, { type: "leave", channel: "c", client: "gone" });
  assert.deepEqual(seen, []);
  assert.deepEqual([members.count, members.complete, names(members)], [3, true, names(clients)]);
  assert.equal(members.get("b")?.here, 5);
  assert.deepEqual(before, ["+a", "+b", "b=5", `+${sb.client}`]);
});

test("in combined changes, a client of another user leaves and joins", async () => {
  const { sb, socket } = await connected();
  const { members, seen } = await watched(sb);
  socket.answer("presence", { type: "presence", count: 1, clients: [{ client: "a", user: "u" }] });
  await settle();
  const change = { joined: [{ client: "a", user: "v" }], left: [{ client: "a", user: "u" }] };
  socket.receive({ type: "presence", channel: "c", count: 1, ...change });
  assert.deepEqual([members.get("a")?.user, members.count, members.complete], ["v", 1, true]);
  assert.deepEqual(seen, ["+a", "-a", "+a"]);
});

test("members that are not complete are read again", async () => {
  const { sb, socket } = await connected({ pingAfter: 1e9 });
  const { members } = await watched(sb);
  socket.answer("presence", { type: "presence", count: 2, clients: [{ client: "a" }, { client: "c-1" }] });
  await settle();
  socket.receive({ type: "presence", channel: "c", count: 300 }); // more changes than one message has
  socket.receive({ type: "join", channel: "c", client: "c" });
  assert.deepEqual([members.complete, members.count], [false, 301]);
  tick(15_000);
  socket.answer("presence", { type: "presence", count: 2, clients: [{ client: "c" }, { client: "c-1" }] });
  await settle();
  assert.deepEqual([members.complete, members.count, names(members)], [true, 2, ["c", "c-1"]]);
});

test("a close while the members are read is no error", async () => {
  const { sb, errors } = await connected();
  await watched(sb);
  await sb.close();
  await settle();
  assert.deepEqual(errors, []);
});

test("pages that are refused for now are read later", async () => {
  const { sb, socket } = await connected();
  const { members } = await watched(sb);
  socket.answer("presence", { type: "error", code: "rate_limited", message: "later" });
  await settle();
  socket.receive({ type: "join", channel: "c", client: "b" });
  tick(5000);
  socket.answer("presence", { type: "presence", count: 1, clients: [{ client: "a" }] });
  await settle();
  assert.deepEqual(names(members), ["a"]);
});

test("pages without this client are read again", async () => {
  const { sb, socket } = await connected();
  const { members } = await watched(sb);
  socket.answer("presence", { type: "presence", count: 1, clients: [{ client: "a" }] });
  await settle();
  tick(50);
  socket.answer("presence", { type: "presence", count: 2, clients: [{ client: "a" }, { client: sb.client! }] });
  await settle();
  assert.deepEqual(names(members), ["a", sb.client]);
  tick(5000);
  assert.equal(socket.types, "");
});

test("in a channel with aliases, pages without this client are complete", async () => {
  const { sb, socket } = await connected();
  const { channel, members, seen } = await watched(sb);
  socket.answer("presence", { type: "presence", count: 1, clients: [{ client: "1" }], alias: "" });
  await settle();
  tick(5000);
  assert.equal(socket.types, "");
  socket.receive({ type: "join", channel: "c", client: "2" }); // this client has an alias now
  assert.deepEqual(
    [seen, names(members)],
    [
      ["+1", "+2"],
      ["1", "2"],
    ],
  );
  const page = channel.presence();
  await settle();
  socket.answer("presence", { type: "presence", count: 2, clients: [{ client: "1" }, { client: "2" }], alias: "2" });
  assert.equal((await page).alias, "2");
});

test("here sends the newest value every 50 ms, and again after a reconnect", async () => {
  const { sb, socket } = await connected();
  const { channel } = await watched(sb);
  socket.take("presence");
  for (let x = 1; x <= 3; x++) channel.here({ x });
  assert.deepEqual(socket.take("here").data, { x: 1 });
  assert.equal(socket.types, "");
  tick(50);
  assert.deepEqual(socket.take("here").data, { x: 3 });
  const next = await reconnect();
  assert.doesNotMatch(next.types, /here/);
  next.subscribed();
  assert.deepEqual(next.take("here").data, { x: 3 });
  channel.here(null);
  tick(50);
  assert.equal(next.take("here").data, null);
  const last = await reconnect();
  last.subscribed();
  assert.doesNotMatch(last.types, /here/);
});

test("a user is online, offline, or not known yet", async () => {
  const { sb, socket } = await connected();
  const seen: string[] = [];
  const user = sb.user("bob");
  user.on("online", () => seen.push("online"));
  user.on("offline", () => seen.push("offline"));
  await settle();
  assert.equal(user.online, undefined);
  const m = socket.take("subscribe");
  assert.deepEqual([m.channel, m.presence], ["$user:bob", undefined]);
  socket.receive({ type: "subscribed", ref: m.ref!, channel: "$user:bob" });
  socket.answer("ping", { type: "pong" });
  await settle();
  socket.receive({ type: "join", channel: "$user:bob", user: "bob" });
  const next = await reconnect();
  next.subscribed({ channel: "$user:bob" });
  next.receive({ type: "join", channel: "$user:bob", user: "bob" });
  next.answer("ping", { type: "pong" });
  await settle();
  next.receive({ type: "leave", channel: "$user:bob", user: "bob" });
  assert.deepEqual(seen, ["offline", "online", "offline"]);
  assert.equal(sb.user("bob"), user);
  const done = user.unsubscribe();
  next.answer("unsubscribe", { type: "unsubscribed", channel: "$user:bob" });
  await done;
  sb.user("bob");
  await settle();
  assert.equal(next.take("subscribe").channel, "$user:bob");
});
