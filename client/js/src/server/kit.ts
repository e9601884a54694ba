import { headersOf, type Condition } from "../api.js";
import type { Account } from "../kit/accounts.js";
import type {
  BoardCard,
  BoardPage,
  BoardResult,
  BoardView,
  SeasonOption,
  Standing,
  SubmissionKey,
} from "../kit/boards.js";
import type { Hold, HoldRequest, Resource } from "../kit/holds.js";
import type { MyRoom, NewRoom, Player, RoomCard, RoomDocument, RoomInfo, RoomPatch, RoomQuery } from "../kit/rooms.js";
import type { Avatar, Placed, SceneInfo } from "../kit/scenes.js";
import type { Json, JsonInput } from "../wire.js";
import type { Backend, CallOptions } from "./backend.js";

type Page = { limit?: number; cursor?: string };

/** How long something lasts. */
interface Ttl {
  ttl_ms?: number;
  /** @deprecated The former name of `ttl_ms`, in seconds. */
  ttl?: number;
}

/** A number is the former form, in seconds. */
type Duration = Ttl | number;

export interface ResourceSettings {
  capacity?: number;
  seats?: string[];
  hold_ms?: number;
  max_life_ms?: number;
  per_user?: number;
  ends?: number;
  data?: JsonInput;
  import?: { id: string; user?: string; seats?: string[]; count?: number; until?: number }[];
  durable?: boolean;
}

export type HeldResource = Resource;
export type AvatarRecord = Avatar;

/** A room, with the users that are in it. */
export interface RoomRecord extends RoomInfo {
  owner_user?: string;
  members: (Player & { user: string })[];
}

/** A place in a room: that of a member, or a reserved one. */
export interface RoomPlace {
  room: string;
  channel: string;
  /** The number of the player. */
  n: number;
  /** The user was in the room before. */
  already?: boolean;
  /** The place is only reserved. */
  reserved?: boolean;
}

/** An event in the history of an account, such as a login. */
export interface AccountEvent {
  n: number;
  /** In ms since 1970. */
  at: number;
  type: string;
  address?: string;
  /** The former name. */
  name?: string;
}

/**
 * The kit's calls for backends. See docs/rooms.md, holds.md, boards.md, accounts.md and scenes.md.
 */
export class Kit {
  constructor(private readonly backend: Backend) {}

  // Rooms.

  createRoom(room: NewRoom & { owner?: string }): Promise<RoomRecord> {
    return this.post("/v1/rooms", room);
  }

  room(room: string): Promise<RoomRecord> {
    return this.get(path`/v1/rooms/${room}`);
  }

  /** Up to 100 rooms, without those that do not exist. */
  queryRooms(rooms: string[]): Promise<{ rooms: RoomRecord[] }> {
    return this.post("/v1/rooms/query", { rooms });
  }

  rooms(
    query: Omit<RoomQuery, "desc" | "visibility"> & { desc?: 1; visibility?: string; owner?: string } = {},
  ): Promise<{ rooms: RoomCard[]; cursor?: string; next?: string }> {
    return this.get("/v1/rooms", query);
  }

  /** The number of rooms: see docs/rooms.md for the combinations that are counted. */
  countRooms(
    query: {
      mode?: string;
      status?: RoomDocument["status"];
      region?: string;
      visibility?: RoomDocument["visibility"];
      owner?: string;
    } = {},
  ): Promise<{ count: number }> {
    return this.get("/v1/room-count", query);
  }

  /** A page of the rooms that a user is in. */
  roomsOf(user: string, page: Page = {}): Promise<{ rooms: MyRoom[]; cursor?: string; next?: string }> {
    return this.get(path`/v1/users/${user}/rooms`, page);
  }

  patchRoom(room: string, patch: RoomPatch): Promise<RoomRecord> {
    return this.backend.call("PATCH", path`/v1/rooms/${room}`, { body: patch });
  }

  deleteRoom(room: string, condition?: Condition): Promise<void> {
    return this.backend.call("DELETE", path`/v1/rooms/${room}`, { headers: headersOf(condition) });
  }

  /** Reserves places for all of the users, or for none. */
  reserve(room: string, users: string[], time?: Duration): Promise<{ room: string; numbers: Record<string, number> }> {
    return this.post(path`/v1/rooms/${room}/reserve`, { users, ...membersOf(time) });
  }

  /**
   * Makes a user a member, on a client that is connected; without a client, it reserves the place.
   */
  joinRoom(room: string, join: { user: string; client?: string; nickname?: string } & Ttl): Promise<RoomPlace> {
    return this.post(path`/v1/rooms/${room}/join`, join);
  }

  /**
   * Makes a user a member of an open public room of the mode, or of a new one, on a client that is
   * connected; without a client, it reserves the place.
   */
  quickJoin(
    join: Pick<NewRoom, "mode" | "region" | "name" | "app_version" | "data"> & {
      user: string;
      client?: string;
      nickname?: string;
    } & Ttl,
  ): Promise<RoomPlace> {
    return this.post("/v1/rooms/quick", join);
  }

  leaveRoom(room: string, user: string): Promise<void> {
    return this.post(path`/v1/rooms/${room}/leave`, { user });
  }

  /** Removes player `n`. It may join again after `time`, a minute if it is absent. */
  kick(room: string, n: number, time?: Duration): Promise<void> {
    return this.post(path`/v1/rooms/${room}/kick`, { n, ...membersOf(time) });
  }

  /** Operates a room: "lock", "start" or "finish". */
  operateRoom(room: string, operation: "lock" | "start" | "finish", body: { locked?: boolean } = {}): Promise<Json> {
    return this.post(path`/v1/rooms/${room}/${operation}`, body);
  }

  // Holds.

  putResource(resource: string, settings: ResourceSettings, condition?: Condition): Promise<Resource> {
    return this.backend.call("PUT", path`/v1/holds/${resource}`, { body: settings, headers: headersOf(condition) });
  }

  resource(resource: string): Promise<Resource> {
    return this.get(path`/v1/holds/${resource}`);
  }

  resources(page: Page = {}): Promise<{ resources: Resource[]; cursor?: string }> {
    return this.get("/v1/holds", page);
  }

  /** Up to 100 resources; null for one that does not exist. */
  queryResources(resources: string[]): Promise<{ resources: (Resource | null)[] }> {
    return this.post("/v1/holds/query", { resources });
  }

  deleteResource(resource: string, condition?: Condition): Promise<void> {
    return this.backend.call("DELETE", path`/v1/holds/${resource}`, { headers: headersOf(condition) });
  }

  hold(resource: string, hold: HoldRequest & { user?: string }): Promise<Hold> {
    return this.post(path`/v1/holds/${resource}/holds`, hold);
  }

  sell(resource: string, sale: Omit<HoldRequest, "hold_ms"> & { user?: string }): Promise<Hold> {
    return this.post(path`/v1/holds/${resource}/sales`, sale);
  }

  held(resource: string, id: string): Promise<Hold> {
    return this.get(path`/v1/holds/${resource}/holds/${id}`);
  }

  /** "confirm" turns a hold into a sale. A second call changes nothing. */
  operateHold(
    resource: string,
    id: string,
    operation: "renew" | "confirm" | "release",
    options: { durable?: boolean } = {},
  ): Promise<Hold> {
    return this.post(path`/v1/holds/${resource}/holds/${id}/${operation}`, options);
  }

  holdsOf(resource: string, user: string): Promise<{ holds: Hold[] }> {
    return this.get(path`/v1/holds/${resource}/users/${user}`);
  }

  // Boards.

  submit(
    board: string,
    score: { player: string; score: number; mode?: "best" | "set" | "add"; durable?: boolean } & SubmissionKey &
      SeasonOption,
  ): Promise<BoardResult> {
    return this.post(path`/v1/boards/${board}/scores`, score);
  }

  removePlayer(board: string, player: string, season: SeasonOption = {}): Promise<BoardResult> {
    return this.backend.call("DELETE", path`/v1/boards/${board}/players/${player}`, { query: { ...season } });
  }

  /** A page of the boards that have a player, in the order of their names. */
  boards(page: Page = {}): Promise<{ boards: BoardCard[]; cursor?: string }> {
    return this.get("/v1/boards", page);
  }

  board(
    board: string,
    query: { offset?: number; cursor?: string; limit?: number } & SeasonOption = {},
  ): Promise<BoardPage> {
    return this.get(path`/v1/boards/${board}`, query);
  }

  around(board: string, player: string, query: { limit?: number } & SeasonOption = {}): Promise<BoardView> {
    return this.get(path`/v1/boards/${board}/players/${player}/around`, query);
  }

  rank(board: string, player: string, season: SeasonOption = {}): Promise<Standing> {
    return this.get(path`/v1/boards/${board}/players/${player}`, season);
  }

  // Accounts, with a key of scope admin, and sessions.

  accounts(
    query: Page & { state?: Account["state"] | "all" } = {},
  ): Promise<{ accounts: Account[]; cursor?: string; total: number }> {
    return this.get("/v1/accounts", query);
  }

  account(account: string): Promise<Account> {
    return this.get(path`/v1/accounts/${account}`);
  }

  accountByName(name: string): Promise<Account> {
    return this.get("/v1/accounts", { name });
  }

  /** The last 100 events of an account, the newest first. */
  accountHistory(account: string): Promise<{ account: string; events: AccountEvent[] }> {
    return this.get(path`/v1/accounts/${account}/history`);
  }

  /** Changes the name; conflict if another account has it, or if the version is another one. */
  renameAccount(account: string, name: string, condition?: Condition): Promise<Account> {
    return this.backend.call("PATCH", path`/v1/accounts/${account}`, { body: { name }, headers: headersOf(condition) });
  }

  /** Replaces the password, and ends all logins and connections. */
  setAccountPassword(account: string, password: string): Promise<Account> {
    return this.post(path`/v1/accounts/${account}/password`, { password });
  }

  operateAccount(account: string, operation: "lock" | "unlock" | "delete" | "restore"): Promise<Account> {
    return this.post(path`/v1/accounts/${account}/${operation}`);
  }

  session<Data = Json>(user: string): Promise<{ user: string; version: number; until: number; data: Data }> {
    return this.get(path`/v1/sessions/${user}`);
  }

  /** Puts a document that ends after `time`, one hour if it is absent. */
  putSession<Data = Json>(
    user: string,
    data: Data,
    time?: Duration,
    condition?: Condition,
  ): Promise<{ user: string; version: number; until: number; data: Data }> {
    return this.backend.call("PUT", path`/v1/sessions/${user}`, {
      body: data,
      query: { ...membersOf(time) },
      headers: headersOf(condition),
    });
  }

  deleteSession(user: string, condition?: Condition): Promise<void> {
    return this.backend.call("DELETE", path`/v1/sessions/${user}`, { headers: headersOf(condition) });
  }

  // Avatars and scenes.

  /** A repeated call with the same `key` returns the same avatar. */
  createAvatar(avatar: {
    user: string;
    name: string;
    id?: string;
    key?: string;
    figure?: string;
    data?: JsonInput;
  }): Promise<Avatar> {
    return this.post("/v1/avatars", avatar);
  }

  avatars(query: Page & { user: string; status?: Avatar["status"] }): Promise<{ avatars: Avatar[]; cursor?: string }> {
    return this.get("/v1/avatars", query);
  }

  avatar(avatar: string): Promise<Avatar> {
    return this.get(path`/v1/avatars/${avatar}`);
  }

  patchAvatar(
    avatar: string,
    patch: { version?: number; name?: string; figure?: string; data?: JsonInput; status?: Avatar["status"] },
  ): Promise<Avatar> {
    return this.backend.call("PATCH", path`/v1/avatars/${avatar}`, { body: patch });
  }

  /** Marks an avatar as deleted, and takes it out of its scene. */
  deleteAvatar(avatar: string, condition?: Condition): Promise<Avatar> {
    return this.backend.call("DELETE", path`/v1/avatars/${avatar}`, { headers: headersOf(condition) });
  }

  /** Moves an avatar to a scene. With `from`, only from there; "" is no scene. */
  placeAvatar(avatar: string, scene: string, from?: string): Promise<Avatar> {
    return this.backend.call("PUT", path`/v1/avatars/${avatar}/scene`, { body: { scene, from } });
  }

  takeAvatar(avatar: string): Promise<Avatar> {
    return this.backend.call("DELETE", path`/v1/avatars/${avatar}/scene`);
  }

  /** A repeated call with the same `key` returns the same scene. */
  createScene(scene: {
    world: string;
    name: string;
    id?: string;
    key?: string;
    status?: string;
    time?: string;
    data?: JsonInput;
  }): Promise<SceneInfo> {
    return this.post("/v1/scenes", scene);
  }

  /** A page of the scenes of a world, or of all worlds, without those that are deleted. */
  scenes(
    query: Page & { world?: string; name?: string; status?: string } = {},
  ): Promise<{ scenes: SceneInfo[]; cursor?: string }> {
    return this.get("/v1/scenes", query);
  }

  /** The scene of a world with a name. */
  sceneByName(world: string, name: string): Promise<SceneInfo & { online: number; avatars: Placed[] }> {
    return this.get("/v1/scenes", { world, name });
  }

  scene(scene: string): Promise<SceneInfo & { online: number; avatars: Placed[] }> {
    return this.get(path`/v1/scenes/${scene}`);
  }

  patchScene(
    scene: string,
    patch: { version?: number; name?: string; status?: string; time?: string; data?: JsonInput },
  ): Promise<SceneInfo> {
    return this.backend.call("PATCH", path`/v1/scenes/${scene}`, { body: patch });
  }

  /** Marks a scene as deleted. It loses its avatars and its name. */
  deleteScene(scene: string, condition?: Condition): Promise<SceneInfo> {
    return this.backend.call("DELETE", path`/v1/scenes/${scene}`, { headers: headersOf(condition) });
  }

  private get<Answer>(to: string, query: object = {}): Promise<Answer> {
    return this.backend.call("GET", to, { query: query as CallOptions["query"] });
  }

  private post<Answer>(to: string, body?: unknown): Promise<Answer> {
    return this.backend.call("POST", to, { body });
  }
}

/** path escapes the names in a path. */
function path(parts: TemplateStringsArray, ...names: string[]): string {
  return String.raw({ raw: parts }, ...names.map(encodeURIComponent));
}

function membersOf(time: Duration = {}): Ttl {
  return typeof time === "number" ? { ttl: time } : time;
}
