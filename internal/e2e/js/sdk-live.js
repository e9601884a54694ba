// Uses the kit and the server entry of client/js with a broker that has keys. It prints the port of
// the backend that answers requests, and reads the broker's address from stdin.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import WebSocket from "ws";
import { Switchboard, SwitchboardError } from "../../../client/js/dist/index.js";
import { Accounts, Boards, Holds, Rooms, Scenes } from "../../../client/js/dist/kit/index.js";
import { ApiError, Backend, parseSigned, signToken } from "../../../client/js/dist/server/index.js";

const { SDK_KEY: key, SDK_TOKEN_SECRET: tokenSecret, SDK_REQUEST_SECRET: requestSecret } = process.env;

// CommonJS has the same names.
const require = createRequire(import.meta.url);
for (const entry of ["index", "kit/index", "server/index"]) {
  const path = `../../../client/js/dist/${entry}`;
  assert.deepEqual(Object.keys(require(`${path}.cjs`)).sort(), Object.keys(await import(`${path}.js`)).sort());
}

/** A backend that verifies requests and answers them. */
const server = createServer(async (req, res) => {
  const body = Buffer.concat(await all(req));
  await assert.rejects(parseSigned("another secret of 16 bytes", req.headers, body));
  await assert.rejects(parseSigned(requestSecret, req.headers, body + " "));
  await assert.rejects(parseSigned(requestSecret, { ...req.headers, "switchboard-timestamp": "1" }, body));
  const { user, query } = await parseSigned(requestSecret, req.headers, body);
  if (query.deny) {
    res.writeHead(409, { "Content-Type": "application/json" });
    return res.end(JSON.stringify({ error: { code: "sold_out", message: "none left", data: { left: 0 } } }));
  }
  res.end(JSON.stringify({ user, query }));
});

async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

server.listen(0, "127.0.0.1");
await once(server, "listening");
console.log(JSON.stringify({ port: server.address().port }));
const input = createInterface({ input: process.stdin });
const [address] = await once(input, "line");

const backend = new Backend(["http://127.0.0.1:1", `http://${address}`], { key });
const clients = [];
async function connect(user) {
  let asked = 0;
  const sb = new Switchboard(`ws://${address}/ws`, {
    WebSocket,
    token: () => (asked++, signToken(tokenSecret, { sub: user, info: { name: user } })),
  });
  clients.push(sb);
  await new Promise((resolve) => sb.once("connected", resolve));
  assert.equal(asked, 1);
  return sb;
}
const amy = await connect("amy");
const bob = await connect("bob");
const next = (target, event, when = () => true) =>
  new Promise((resolve) => {
    const off = target.on(event, (...args) => when(...args) && (off(), resolve(args[0])));
  });

// Requests, and their refusals.
assert.deepEqual(await amy.request({ q: 1 }), { user: "amy", query: { q: 1 } });
const denied = await amy.request({ deny: true }).catch((error) => error);
assert.ok(denied instanceof SwitchboardError);
assert.deepEqual([denied.code, denied.data], ["sold_out", { left: 0 }]);

// Pushes, presence, state, history. The first call finds that the first instance is away.
await assert.rejects(backend.push({ channel: "news", data: 0 }), { code: "lost" });
const news = amy.channel("news", { presence: true, state: true });
await news.subscribe();
const message = next(news, "message");
const {
  results: [pushed],
} = await backend.push({ channel: "news", data: { title: "hi" }, set: { top: 1 }, key: "k1" });
assert.deepEqual(await message, { title: "hi" });
assert.equal(news.state.get("top"), 1);
assert.equal(
  (await backend.push({ channel: "news", data: { title: "hi" }, set: { top: 1 }, key: "k1" })).results[0].duplicate,
  true,
);
assert.deepEqual(
  (await backend.history("news")).messages.map((m) => m.id),
  [pushed.id],
);
assert.deepEqual((await backend.state("news")).fields, { top: [pushed.id, 1] });
assert.equal((await backend.queryState(["news"], ["top"])).channels[0].fields.top[1], 1);
assert.deepEqual(
  (await backend.presence("news")).clients.map((c) => [c.client, c.info]),
  [[amy.client, { name: "amy" }]],
);
const batch = await backend.batch([
  { users: ["bob"], data: 1 },
  { channel: "news", set: { top: 2 }, if: { top: 5 } },
]);
assert.ok(batch.results[0].results[0].clients[0].id > 0);
assert.equal(batch.results[1].results[0].error.code, "conflict");
assert.equal(await next(bob.inbox, "message"), 1);
assert.deepEqual(await backend.online(["amy", "zoe"]), {
  users: [
    { user: "amy", online: true },
    { user: "zoe", online: false },
  ],
});
assert.equal((await backend.user("bob")).online, true);
assert.equal((await backend.client(amy.client)).user, "amy");
assert.equal((await backend.servers()).servers.length, 1);
const refused = await backend.push({ channel: "a b", data: 1 }).catch((error) => error);
assert.ok(refused instanceof ApiError && refused instanceof SwitchboardError);
assert.deepEqual([refused.code, refused.status], ["bad_request", 400]);

// Calls of operators.
const self = await backend.self();
assert.deepEqual([self.open, self.tokens, self.key.scopes], [false, true, ["push", "read", "admin"]]);
const stats = await backend.stats();
assert.deepEqual([stats.partial, stats.servers.length, stats.servers[0].server], [false, 1, self.server]);
const { rights } = await backend.check({ channel: "news", token: await signToken(tokenSecret, { sub: "amy" }) });
assert.ok(rights.find(({ right }) => right === "subscribe").allowed);
assert.match((await backend.check({ channel: "news", token: "bad" })).error, /./);
await assert.rejects(backend.webhooks(), { code: "not_found" });
await backend.push({ client: "zoe/phone", data: 7 });
const { messages, count } = await backend.queue("zoe/phone");
assert.deepEqual([messages.map(({ data }) => data), count], [[7], 1]);
await backend.notify({ channels: ["news"], clients: ["zoe/phone"] });

// Rooms.
const rooms = new Rooms(amy);
const lobby = await rooms.lobby("battle").ready();
const room = await rooms.create({ mode: "battle", name: "Arena", nickname: "Amy" });
if (!lobby.rooms.length) await next(lobby, "change", () => lobby.rooms.length > 0);
assert.equal(lobby.rooms[0].room.name, "Arena");
const joined = await new Rooms(bob).join(room.id, { nickname: "Bob" });
await joined.set("position", [1, 2]);
if (!room.get("position", joined.n)) await next(room, "change", () => room.get("position", joined.n));
assert.deepEqual(room.get("position", joined.n), [1, 2]);
assert.deepEqual(
  room.players.map((p) => [p.n, p.nickname]),
  [
    [1, "Amy"],
    [2, "Bob"],
  ],
);
await room.start();
if (room.document.status !== "playing") await next(room, "change", () => room.document.status === "playing");
assert.equal((await backend.kit.room(room.id)).room.status, "playing");
assert.equal((await rooms.mine()).rooms[0].id, room.id);
assert.equal((await backend.kit.roomsOf("bob")).rooms[0].id, room.id);
assert.deepEqual(
  (await backend.kit.queryRooms([room.id, "none"])).rooms.map(({ members }) => members.map(({ user }) => user)),
  [["amy", "bob"]],
);
assert.equal((await backend.kit.countRooms({ mode: "battle" })).count, 1);
await joined.leave();
await assert.rejects(new Rooms(bob).join("none"), { code: "not_found" });

// Holds.
await backend.kit.putResource("play-7", { seats: ["A1..A4"] }, { ifNoneMatch: "*" });
await assert.rejects(backend.kit.putResource("play-7", { seats: ["A1..A4"] }, { ifNoneMatch: "*" }), {
  code: "conflict",
  status: 409,
});
const holds = new Holds(amy);
const seats = await holds.seats("play-7").ready();
const hold = await holds.take("play-7", { seats: ["A1", "A2"] });
const taken = await new Holds(bob).take("play-7", { seats: ["A2"] }).catch((error) => error);
assert.deepEqual([taken.code, taken.data], ["conflict", { taken: ["A2"] }]);
if (seats.get("A1").state === "free") await next(seats, "change");
assert.ok(seats.get("A1").until >= hold.until); // the seat has it until the hold ends, at least
const sold = next(seats, "change", () => seats.get("A1").state === "sold");
await backend.kit.operateHold("play-7", hold.id, "confirm");
await sold;
assert.deepEqual([seats.taken.sort(), seats.get("A3")], [["A1", "A2"], { state: "free" }]);

assert.deepEqual(
  (await backend.kit.queryResources(["none", "play-7"])).resources.map((r) => r?.resource),
  [undefined, "play-7"],
);

// Boards.
const top = await new Boards(amy).follow("chess").ready();
const changed = next(top, "change");
await backend.kit.submit("chess", { player: "amy", score: 1500, key: "game-1" });
await changed;
assert.deepEqual(top.entries, [{ rank: 1, player: "amy", score: 1500 }]);
assert.equal((await new Boards(amy).rank("chess")).rank, 1);

// Scenes.
await backend.kit.createScene({ id: "town", world: "earth", name: "Town" });
const scenes = new Scenes(amy);
const zoe = await scenes.createAvatar({ name: "Zoe", figure: "elf" });
const town = await scenes.enter(zoe.id, "town");
await town.set("position", [3, 4]);
if (!town.avatars[0]?.fields.position) await next(town, "change", () => town.avatars[0]?.fields.position);
assert.deepEqual(town.avatars, [
  { avatar: zoe.id, name: "Zoe", figure: "elf", online: true, fields: { position: [3, 4] } },
]);

// A client that is refused does not follow the scene.
await backend.kit.createScene({ id: "castle", world: "earth", name: "Castle" });
await assert.rejects(scenes.enter(zoe.id, "castle"), { code: "conflict" });
const vacated = async () => (await backend.channel("scene:castle")).subscribers === 0;
while (!(await vacated())) await amy.call("avatar.list", {});
assert.equal((await backend.kit.deleteScene("castle")).status, "deleted");

// Accounts, and sessions of the backend.
const renewals = [];
const accounts = new Accounts(`http://${address}`, { onRenewal: (renewal) => renewals.push(renewal) });
await accounts.register({ name: "zoe@example.com", password: "corre\u00adct\u00a0hörse" });
for (const name of ["zoe@example.com", "nobody"]) {
  const credentials = { name, password: "wrong" };
  await assert.rejects(accounts.loginWithPassword(credentials), { code: "unauthorized" });
  await assert.rejects(accounts.login(credentials), { code: "unauthorized" });
}
const credentials = { name: "Zoe@example.com", password: "correct hörse" };
assert.equal((await accounts.loginWithPassword(credentials)).account.name, "zoe@example.com");
const login = await accounts.login(credentials);
const zoeClient = new Switchboard(`http://${address}/ws`, { WebSocket, token: () => login.token() });
clients.push(zoeClient);
assert.equal((await next(zoeClient, "connected")).user, login.account.id);
await login.renew();
assert.equal((await login.patch({ nickname: "Zoe" })).nickname, "Zoe");
const resumed = await accounts.resume(renewals.at(-1));
assert.equal((await resumed.me()).name, "zoe@example.com");
assert.equal((await backend.kit.putSession("amy", { room: 7 }, { ttl_ms: 60_000 })).data.room, 7);
assert.equal((await backend.kit.session("amy")).data.room, 7);
await backend.kit.deleteSession("amy");
await assert.rejects(backend.kit.session("amy"), { code: "not_found" });

// The end of a connection by the backend is final.
const ended = next(bob, "closed");
assert.deepEqual(await backend.disconnectUser("bob"), { disconnected: 1 });
assert.equal((await ended).code, "disconnected");
for (const sb of clients) await sb.close();
server.close();
input.close();
console.log(JSON.stringify({ done: true }));
