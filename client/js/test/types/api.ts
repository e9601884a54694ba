// Uses the built package as an application in TypeScript does. It is compiled and not run.
import {
  SignedOutError,
  Switchboard,
  SwitchboardError,
  type Channel,
  type CloseCode,
  type ErrorCode,
  type Json,
  type StateChange,
} from "switchboard-client";
import { Accounts, Boards, Holds, Rooms, Scenes, type Room } from "switchboard-client/kit";
import { Backend, parseSigned, signToken, type BackendRequest, type WebhookEvent } from "switchboard-client/server";

interface News {
  title: string;
}
interface Table {
  turn: "amy" | "bob";
  moves: number;
  "seat/1": Seat;
  [place: `place/${number}`]: Seat;
}
interface Seat {
  user: string;
  since?: Date;
}

export async function browser(): Promise<void> {
  const sb = new Switchboard(["wss://a/ws", "wss://b/ws"], {
    token: async () => (await fetch("/token")).text(),
    client: "auto",
    WebSocket,
    storage: localStorage,
    logger: console,
    backoffMax: 10_000,
  });
  sb.on("connected", ({ client, server }) => console.log(client.length, server.length));
  sb.on("disconnected", ({ code, retryIn }) => {
    const known: CloseCode | "lost" | "token" = code;
    console.log(known, retryIn.toFixed());
  });
  const off = sb.on("error", (error, { event, channel }) => console.error(error, event, channel));
  off();

  const news = sb.channel<News>("news", { presence: true });
  news.on("message", (data, { id, by }) => console.log(data.title.length, id.toFixed(), by?.length));
  news.on("gap", ({ after, id }) => console.log(after, id));
  const release: () => Promise<void> = news.hold();
  await release();
  news.on("unsubscribed", ({ code }) => console.log(code satisfies string));
  news.members.on("join", (m) => console.log(m.client, m.user));
  for (const m of news.members) console.log(m.client);
  news.here({ x: 1 });
  const { messages, more } = await news.history({ limit: 50 });
  console.log(messages[0]?.data?.title, more);
  const { id } = await news.publish({ title: "hi" }, { key: true, durable: true });
  console.log(id.toFixed());

  sb.inbox.on("message", async (data, info) => console.log(data, info.id));
  sb.all.on("message", (data) => console.log(data));
  sb.user("bob").on("online", () => {});

  const table = sb.channel<never, Table>("table:7", { state: true });
  await table.state.ready();
  const turn: "amy" | "bob" | undefined = table.state.get("turn");
  console.log(turn, table.state.entry("moves")?.value.toFixed(), table.state.entry("seat/1")?.until);
  table.state.on("change", (change: StateChange) => console.log(change.names, change.gone));
  await table.set("turn", "bob", { if: { turn: table.state.entry("turn")?.id ?? null } });
  const moves: number = await table.add("moves", 1, { max: 9 });
  await table.del(["turn"], { ttl: 5 });
  const result: number = await table.transact((s) => {
    s.turn = s.turn === "amy" ? "bob" : "amy";
    s.moves = (s.moves ?? 0) + moves;
    delete s["seat/1"];
    return s.moves;
  });
  console.log(result);

  const seat: Seat = { user: "amy" };
  await table.update({
    set: { turn: "amy", moves: 1, "place/2": seat },
    add: { moves: { by: 1 } },
    if: { turn: null },
    touch: ["seat/1"],
  });
  for (const [name, value] of table.state) console.log(name.length, value);

  // Without types, what arrives is JSON, and what is sent is all that has a JSON form.
  const untyped: Channel = sb.channel("untyped");
  untyped.on("message", (data: Json) => console.log(typeof data === "string" && data.length));
  await untyped.publish(seat);
  await untyped.update({ set: { seat, turn: "amy" }, data: [seat] });
  untyped.here(seat);

  const answer = await sb.request<{ ok: boolean }>({ q: 1 });
  console.log(answer.ok);
  try {
    await sb.call("room.join", { room: "r" }, { timeout: 500 });
  } catch (error) {
    if (error instanceof SwitchboardError) {
      const code: ErrorCode | (string & {}) = error.code;
      console.log(code, error.data, error.fields?.["turn"]?.value, error.group, error.max);
    }
  }

  // @ts-expect-error: there is no such event
  sb.on("connect", () => {});
  // @ts-expect-error: the data has another type
  await news.publish({ text: "hi" });
  // @ts-expect-error: there is no such field
  table.state.get("colour");
  // @ts-expect-error: the field has another type
  await table.set("moves", "three");
  // @ts-expect-error: the field has another type
  await table.update({ set: { turn: "eve" } });
  // @ts-expect-error: there is no such field
  await table.update({ set: { colour: "red" } });
  // @ts-expect-error: there is no such field
  await table.update({ del: ["colour"] });
  // @ts-expect-error: there is no such field
  await table.update({ if: { colour: 7 } });
  // @ts-expect-error: the data has another type
  await news.update({ data: { text: "hi" } });
  // @ts-expect-error: a bigint has no JSON form
  await untyped.publish(1n);
  // @ts-expect-error: data without a type may be anything
  untyped.on("message", (data) => console.log(data.title));
  // @ts-expect-error: members are only read
  news.members.set("a", {});
  // @ts-expect-error: internals are not in the types
  news._message({});
}

export async function kit(sb: Switchboard): Promise<void> {
  const room: Room = await new Rooms(sb).join("arena", { nickname: "Amy" });
  console.log(
    room.players.map((p) => p.nickname),
    room.document?.status === "playing",
  );
  const lobby = new Rooms(sb).lobby("battle");
  lobby.on("change", () => console.log(lobby.rooms.length));
  const hold = await new Holds(sb).take("play-7", { seats: ["A1"] });
  console.log(hold.until, new Holds(sb).seats("play-7").get("A1").state);
  console.log((await new Boards(sb).top("chess")).entries[0]?.score);
  console.log((await new Scenes(sb).enter("zoe", "town")).avatars);
  const session = await new Accounts("https://push.example.com").login({ name: "amy", password: "secret" });
  new Switchboard("wss://push.example.com/ws", { token: () => session.token() });
}

export async function backend(headers: Headers, body: string): Promise<void> {
  const backend = new Backend("http://127.0.0.1:8080", { key: "key" });
  const { results } = await backend.push({ users: ["amy"], data: 1, notify_after: 30, first: true });
  for (const { user, clients, error } of results) console.log(user, clients?.length, error?.code);
  await backend.push({ channel: "c", set: { a: 1 }, if: { a: 0 }, key: "k" });
  await backend.batch([
    { all: true, data: 1 },
    { client: "amy/phone", data: 2 },
  ]);
  // @ts-expect-error: a push needs a target
  await backend.push({ data: 1 });
  const scopes: ("push" | "read" | "admin")[] = (await backend.self()).key.scopes;
  const { rights = [], error } = await backend.check({ channel: "c", user: "amy" });
  console.log(scopes, error, rights[0]?.why, (await backend.stats()).servers[0]?.append.p99);
  console.log((await backend.queue("amy/phone", { wait: 3 })).count, (await backend.webhooks()).oldest?.toFixed());
  console.log((await backend.kit.room("arena")).members[0]?.user);
  console.log(
    (await backend.kit.createRoom({ mode: "battle" })).id,
    (await backend.users()).users?.[0]?.clients.join(),
  );
  const token: string = await signToken("secret", { sub: "amy", channels: { "chat:1": "sub pub" } }, { expiresIn: 60 });
  console.log(token);
  const { events } = await parseSigned("secret", headers, body);
  for (const event of events satisfies WebhookEvent[]) if (event.type === "user_online") console.log(event.user);
  const request = await parseSigned<BackendRequest<{ q: number }>>("secret", headers, body);
  console.log(request.query.q, new SignedOutError().name);
}
