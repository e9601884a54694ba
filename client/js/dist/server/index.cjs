"use strict";
var __defProp = Object.defineProperty;
var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __hasOwnProp = Object.prototype.hasOwnProperty;
var __export = (target, all) => {
  for (var name in all)
    __defProp(target, name, { get: all[name], enumerable: true });
};
var __copyProps = (to, from, except, desc) => {
  if (from && typeof from === "object" || typeof from === "function") {
    for (let key of __getOwnPropNames(from))
      if (!__hasOwnProp.call(to, key) && key !== except)
        __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
  }
  return to;
};
var __toCommonJS = (mod) => __copyProps(__defProp({}, "__esModule", { value: true }), mod);

// src/server/index.ts
var index_exports = {};
__export(index_exports, {
  ApiError: () => ApiError,
  Backend: () => Backend,
  Kit: () => Kit,
  SwitchboardError: () => import_errors3.SwitchboardError,
  parseSigned: () => parseSigned,
  signToken: () => signToken,
  verifySignature: () => verifySignature
});
module.exports = __toCommonJS(index_exports);

// src/config.ts
function urlsOf(urls, scheme) {
  const list = [urls].flat().map(String);
  return [...new Set(list.length ? list : [""])].map((url) => {
    const [, host, path2 = ""] = /^(?:ws|http)(s?:\/\/[^/?#\s]+)([^#\s]*)$/i.exec(url) ?? [];
    if (!host) throw new TypeError(`"${url}" is no URL of a broker, such as wss://push.example.com`);
    return scheme + host + (scheme === "ws" ? path2.replace(/^\/?(?=\?|$)/, "/ws") : path2.replace(/\/+$/, ""));
  });
}

// src/api.ts
var import_errors2 = require("../index.cjs");

// src/json.ts
var import_errors = require("../index.cjs");
function jsonOf(value, what) {
  let cause;
  try {
    const text = JSON.stringify(value);
    if (text !== void 0) return text;
  } catch (error) {
    cause = error;
  }
  const why = cause ? String(cause).split("\n")[0] : typeof value;
  throw new import_errors.SwitchboardError("bad_request", `${what}: the data is not JSON: ${why}`, {}, cause);
}

// src/api.ts
var Api = class {
  constructor(urls, options = {}) {
    this.options = options;
    this.at = 0;
    this.urls = urlsOf(urls, "http");
  }
  post(path2, body) {
    return this.call("POST", path2, { body });
  }
  /**
   * Makes a call. If an instance cannot be reached, the next call goes to the next one. The code of
   * the error is then `lost`: a call that changes something may have been executed.
   */
  async call(method, path2, { query, body, headers, key = this.options.key, wait = 0 } = {}) {
    const search = Object.entries(query ?? {}).filter(([, value]) => value !== void 0).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
    const { at } = this;
    const url = `${this.urls[at % this.urls.length]}${path2}${search && `?${search}`}`;
    const content = body === void 0 ? null : jsonOf(body, path2);
    let response;
    let text;
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), (this.options.timeout ?? 1e4) + wait);
    try {
      response = await (this.options.fetch ?? fetch)(url, {
        method,
        headers: {
          ...body !== void 0 && { "Content-Type": "application/json" },
          ...key !== void 0 && { Authorization: `Bearer ${key}` },
          ...headers
        },
        body: content,
        signal: abort.signal
      });
      text = await response.text();
    } catch (error2) {
      this.next(at);
      const why = abort.signal.aborted ? "no answer in time" : String(error2);
      throw new import_errors2.SwitchboardError("lost", `${method} ${path2}: ${why}`, {}, error2);
    } finally {
      clearTimeout(timer);
    }
    const answer = parse(text);
    if (response.ok && answer !== void 0) return answer;
    const { code = "lost", message = `status ${response.status}` } = answer?.error ?? {};
    if (response.status >= 500) this.next(at);
    const error = new ApiError(code, message, answer?.error);
    error.status = response.status;
    error.results = answer?.results;
    error.retryAfter = Number(response.headers.get("Retry-After")) || 0;
    throw error;
  }
  /** Leaves an instance that has failed. Of several calls that fail there, only one moves on. */
  next(failed) {
    if (this.at === failed) this.at++;
  }
};
var ApiError = class extends import_errors2.SwitchboardError {
  constructor() {
    super(...arguments);
    /** The status of the answer. */
    this.status = 0;
    /** The time in seconds after which to try again; 0 if there is none. */
    this.retryAfter = 0;
  }
};
function headersOf(condition = {}) {
  const { ifMatch, ifNoneMatch } = condition;
  return {
    ...ifMatch !== void 0 && { "If-Match": ifMatch === "*" ? "*" : `"${ifMatch}"` },
    ...ifNoneMatch && { "If-None-Match": ifNoneMatch }
  };
}
function parse(text) {
  try {
    return JSON.parse(text || "null");
  } catch {
    return void 0;
  }
}

// src/clock.ts
function now() {
  return performance.now();
}

// src/backoff.ts
var Backoff = class {
  // when the failures began
  constructor(_min, _max, _first = 4 * _min) {
    this._min = _min;
    this._max = _max;
    this._first = _first;
  }
  /** How long the failures have lasted, in ms. */
  get _age() {
    return now() - (this._since ?? now());
  }
  /** The delay in ms after another failure. */
  _next() {
    this._since ??= now();
    const most = Math.min(Math.max(this._first, Math.min(this._age, 5 * this._first), this._age / 3), this._max);
    return this._min + Math.random() * Math.max(0, most - this._min);
  }
  /** Subtracts `ms` from the time for which it has failed. Returns whether no time is left. */
  _forget(ms = Infinity) {
    if (this._age <= ms) this._since = void 0;
    else this._since += ms;
    return !this._since;
  }
};

// src/server/arguments.ts
function membersOf(time = {}) {
  return typeof time === "number" ? { ttl: time } : time;
}
function path(parts, ...names) {
  return String.raw({ raw: parts }, ...names.map(encodeURIComponent));
}

// src/server/kit.gen.ts
var Kit = class {
  constructor(backend) {
    this.backend = backend;
  }
  /**
   * Creates a room. A repeated `key` returns the same room, while it exists. The answer of a
   * private room has its `code`.
   */
  createRoom(room) {
    return this.backend.call("POST", "/v1/rooms", { body: room });
  }
  /**
   * Lists rooms. A page may be short, or empty, and have a `cursor`. Repeat the call with it until
   * there is none. A room is listed within about a second.
   */
  rooms(query = {}) {
    return this.backend.call("GET", "/v1/rooms", { query });
  }
  /**
   * Counts rooms. Counted by owner; by region; by region, mode and status, also with visibility; or
   * by any of mode, status and visibility. Other combinations are refused.
   */
  countRooms(query = {}) {
    return this.backend.call("GET", "/v1/room-count", { query });
  }
  /**
   * Reads up to 100 rooms from their channels. Rooms that do not exist are missing in the answer.
   */
  queryRooms(rooms) {
    return this.backend.call("POST", "/v1/rooms/query", { body: { rooms } });
  }
  /**
   * Joins an open public room of a mode, or a new one. Chooses the oldest room that waits and has a
   * place. Calls at the same time get different places. Without `client`, the place is reserved
   * until a client joins, and the user owns a new room. A repeated call may take a place in another
   * room.
   */
  quickJoin(join) {
    return this.backend.call("POST", "/v1/rooms/quick", { body: join });
  }
  /**
   * Lists the rooms that a user is in. The cards are those of the list. The place of the user is
   * read from each channel, so a room that the user has left is not in the page.
   */
  roomsOf(user, page = {}) {
    return this.backend.call("GET", path`/v1/users/${user}/rooms`, { query: page });
  }
  /** Reads a room. */
  room(room) {
    return this.backend.call("GET", path`/v1/rooms/${room}`);
  }
  /**
   * Changes the document of a room. Members that are absent stay. Mode, visibility and capacity do
   * not change.
   */
  patchRoom(room, patch) {
    return this.backend.call("PATCH", path`/v1/rooms/${room}`, { body: patch });
  }
  /** Ends a room and the subscriptions of its members. Without a room, nothing happens. */
  deleteRoom(room, condition) {
    return this.backend.call("DELETE", path`/v1/rooms/${room}`, { headers: headersOf(condition) });
  }
  /**
   * Takes places for several users, all or none. A join keeps the number, and needs neither code
   * nor an unlocked room. Users that are members keep their number.
   */
  reserve(room, users, time) {
    return this.backend.call("POST", path`/v1/rooms/${room}/reserve`, { body: { users, ...membersOf(time) } });
  }
  /**
   * Joins a room for a connected client, or reserves a place for a user. A private room needs no
   * code. Without `client`, the place is reserved until a client joins.
   */
  joinRoom(room, join) {
    return this.backend.call("POST", path`/v1/rooms/${room}/join`, { body: join });
  }
  /** Ends the membership of a user on all devices. */
  leaveRoom(room, user) {
    return this.backend.call("POST", path`/v1/rooms/${room}/leave`, { body: { user } });
  }
  /**
   * Ends the membership with a number. The user may not join again for a time, unless you join or
   * reserve for it.
   */
  kick(room, n, time) {
    return this.backend.call("POST", path`/v1/rooms/${room}/kick`, { body: { n, ...membersOf(time) } });
  }
  /** Operates a room: `lock`, `start` or `finish`. */
  operateRoom(room, operation, body = {}) {
    return this.backend.call("POST", path`/v1/rooms/${room}/${operation}`, { body });
  }
  /**
   * Lists resources in the order of their names. A new resource is listed within about a second.
   * The numbers are as of now.
   */
  resources(page = {}) {
    return this.backend.call("GET", "/v1/holds", { query: page });
  }
  /** Reads up to 100 resources. */
  queryResources(resources) {
    return this.backend.call("POST", "/v1/holds/query", { body: { resources } });
  }
  /**
   * Creates or changes a resource, and imports holds and sales. An import over an existing resource
   * needs its version in `If-Match`.
   */
  putResource(resource, settings, condition) {
    return this.backend.call("PUT", path`/v1/holds/${resource}`, { body: settings, headers: headersOf(condition) });
  }
  /** Reads a resource with the numbers of its places. */
  resource(resource) {
    return this.backend.call("GET", path`/v1/holds/${resource}`);
  }
  /** Removes a resource with all holds and sales. Without a resource, nothing happens. */
  deleteResource(resource, condition) {
    return this.backend.call("DELETE", path`/v1/holds/${resource}`, { headers: headersOf(condition) });
  }
  /**
   * Lists the holds and sales of a resource, in the order of their ids. Those that ended lately are
   * among them. With `state`, a page may have fewer items than `limit`, also none, and a cursor.
   */
  holds(resource, query = {}) {
    return this.backend.call("GET", path`/v1/holds/${resource}/holds`, { query });
  }
  /**
   * Holds all of the places, or none. A repeated call with the same `id`, or with the same `key` of
   * the user, returns the same hold.
   */
  hold(resource, hold) {
    return this.backend.call("POST", path`/v1/holds/${resource}/holds`, { body: hold });
  }
  /** Sells places without a hold. */
  sell(resource, sale) {
    return this.backend.call("POST", path`/v1/holds/${resource}/sales`, { body: sale });
  }
  /** Reads a hold or a sale, also for a day after its end. */
  held(resource, id) {
    return this.backend.call("GET", path`/v1/holds/${resource}/holds/${id}`);
  }
  /** `confirm` turns a hold into a sale. A second call changes nothing. */
  operateHold(resource, id, operation, options = {}) {
    return this.backend.call("POST", path`/v1/holds/${resource}/holds/${id}/${operation}`, { body: options });
  }
  /**
   * Lists the holds and sales of a user, the newest first. Those that ended lately are among them.
   */
  holdsOf(resource, user) {
    return this.backend.call("GET", path`/v1/holds/${resource}/users/${user}`);
  }
  /**
   * Lists boards in the order of their names. The boards that have a player, in the current season
   * or in one that is kept. A new board is listed within about a second. The numbers are as of now.
   */
  boards(page = {}) {
    return this.backend.call("GET", "/v1/boards", { query: page });
  }
  /**
   * Submits a score. With a `key`, a submission counts once. A repeat answers with the first result
   * and `repeated`.
   */
  submit(board, score) {
    return this.backend.call("POST", path`/v1/boards/${board}/scores`, { body: score });
  }
  /** Reads entries of a board by rank. */
  board(board, query = {}) {
    return this.backend.call("GET", path`/v1/boards/${board}`, { query });
  }
  /** Reads the place of a player. */
  rank(board, player, season = {}) {
    return this.backend.call("GET", path`/v1/boards/${board}/players/${player}`, { query: season });
  }
  /** Removes a player from a board. Removing an absent player changes nothing. */
  removePlayer(board, player, season = {}) {
    return this.backend.call("DELETE", path`/v1/boards/${board}/players/${player}`, { query: season });
  }
  /** Reads a player and the neighbors on each side. */
  around(board, player, query = {}) {
    return this.backend.call("GET", path`/v1/boards/${board}/players/${player}/around`, { query });
  }
  /** Lists accounts, the newest first. The list may be some seconds old. */
  accounts(query = {}) {
    return this.backend.call("GET", "/v1/accounts", { query });
  }
  /** Finds the account with a name. */
  accountByName(name) {
    return this.backend.call("GET", "/v1/accounts", { query: { name } });
  }
  /** Reads an account. */
  account(account) {
    return this.backend.call("GET", path`/v1/accounts/${account}`);
  }
  /** Gives an account another name. */
  renameAccount(account, name, condition) {
    return this.backend.call("PATCH", path`/v1/accounts/${account}`, { headers: headersOf(condition), body: { name } });
  }
  /** Reads the last 100 events of an account, the newest first. */
  accountHistory(account) {
    return this.backend.call("GET", path`/v1/accounts/${account}/history`);
  }
  /** Replaces the password of an account. All logins and connections end. */
  setAccountPassword(account, password) {
    return this.backend.call("POST", path`/v1/accounts/${account}/password`, { body: { password } });
  }
  /**
   * Locks or unlocks an account, marks it as deleted, or restores it. Without an open account, all
   * logins and connections end.
   */
  operateAccount(account, operation) {
    return this.backend.call("POST", path`/v1/accounts/${account}/${operation}`);
  }
  /** Reads the document of a user. */
  session(user) {
    return this.backend.call("GET", path`/v1/sessions/${user}`);
  }
  /** Stores the document of a user for a time. */
  putSession(user, data, time, condition) {
    return this.backend.call("PUT", path`/v1/sessions/${user}`, {
      body: data,
      headers: headersOf(condition),
      query: { ...membersOf(time) }
    });
  }
  /** Removes the document of a user. Without a document, nothing happens. */
  deleteSession(user, condition) {
    return this.backend.call("DELETE", path`/v1/sessions/${user}`, { headers: headersOf(condition) });
  }
  /** Creates an avatar. It is in no scene. A repeated `key` returns the same one. */
  createAvatar(avatar) {
    return this.backend.call("POST", "/v1/avatars", { body: avatar });
  }
  /** Lists the avatars of a user, the oldest first. */
  avatars(query) {
    return this.backend.call("GET", "/v1/avatars", { query });
  }
  /** Reads an avatar. */
  avatar(avatar) {
    return this.backend.call("GET", path`/v1/avatars/${avatar}`);
  }
  /** Changes an avatar. Members that are absent stay. */
  patchAvatar(avatar, patch) {
    return this.backend.call("PATCH", path`/v1/avatars/${avatar}`, { body: patch });
  }
  /** Marks an avatar as deleted, and takes it out of its scene. */
  deleteAvatar(avatar, condition) {
    return this.backend.call("DELETE", path`/v1/avatars/${avatar}`, { headers: headersOf(condition) });
  }
  /** Moves an avatar to a scene. Nothing changes if it is there. */
  placeAvatar(avatar, scene, from) {
    return this.backend.call("PUT", path`/v1/avatars/${avatar}/scene`, { body: { scene, from } });
  }
  /** Takes an avatar out of its scene. */
  takeAvatar(avatar) {
    return this.backend.call("DELETE", path`/v1/avatars/${avatar}/scene`);
  }
  /**
   * Creates a scene. The name of a scene is unique in its world. A repeated `key` returns the same
   * one.
   */
  createScene(scene) {
    return this.backend.call("POST", "/v1/scenes", { body: scene });
  }
  /** Lists the scenes of a world, or of all worlds, without those that are deleted. */
  scenes(query = {}) {
    return this.backend.call("GET", "/v1/scenes", { query });
  }
  /** Finds the scene of a world with a name. */
  sceneByName(world, name) {
    return this.backend.call("GET", "/v1/scenes", { query: { world, name } });
  }
  /** Reads a scene with its avatars. */
  scene(scene) {
    return this.backend.call("GET", path`/v1/scenes/${scene}`);
  }
  /** Changes a scene. Members that are absent stay. */
  patchScene(scene, patch) {
    return this.backend.call("PATCH", path`/v1/scenes/${scene}`, { body: patch });
  }
  /** Marks a scene as deleted. It loses its avatars and its name. */
  deleteScene(scene, condition) {
    return this.backend.call("DELETE", path`/v1/scenes/${scene}`, { headers: headersOf(condition) });
  }
};

// src/server/repeats.gen.ts
var repeats = [
  ["POST", "/v1/push", ["key"], []],
  ["POST", "/v1/push/batch", ["key"], []],
  ["POST", "/v1/erase", [], []],
  ["POST", "/v1/notify", [], []],
  ["POST", "/v1/state/query", [], []],
  ["POST", "/v1/users/query", [], []],
  ["POST", "/v1/check", [], []],
  ["POST", "/v1/webhooks/dead/retry", [], []],
  ["POST", "/v1/users/*/revoke", [], []],
  ["POST", "/v1/clients/*/revoke", [], []],
  ["POST", "/v1/clients/*/*/revoke", [], []],
  ["POST", "/v1/users/*/subscribe", [], []],
  ["POST", "/v1/clients/*/subscribe", [], []],
  ["POST", "/v1/clients/*/*/subscribe", [], []],
  ["POST", "/v1/users/*/unsubscribe", [], []],
  ["POST", "/v1/clients/*/unsubscribe", [], []],
  ["POST", "/v1/clients/*/*/unsubscribe", [], []],
  ["POST", "/v1/users/*/forget", [], []],
  ["POST", "/v1/users/*/disconnect", [], []],
  ["POST", "/v1/clients/*/disconnect", [], []],
  ["POST", "/v1/clients/*/*/disconnect", [], []],
  ["POST", "/v1/rooms", ["key"], []],
  ["POST", "/v1/rooms/query", [], []],
  ["DELETE", "/v1/rooms/*", [], ["If-Match"]],
  ["POST", "/v1/rooms/*/reserve", [], []],
  ["POST", "/v1/rooms/*/join", [], []],
  ["POST", "/v1/rooms/*/lock", [], []],
  ["POST", "/v1/rooms/*/start", [], []],
  ["POST", "/v1/rooms/*/finish", [], []],
  ["POST", "/v1/holds/query", [], []],
  ["PUT", "/v1/holds/*", [], ["If-Match", "If-None-Match", "import"]],
  ["DELETE", "/v1/holds/*", [], ["If-Match"]],
  ["POST", "/v1/holds/*/holds", ["id", "key"], []],
  ["POST", "/v1/holds/*/sales", ["id", "key"], []],
  ["POST", "/v1/holds/*/holds/*/renew", [], []],
  ["POST", "/v1/holds/*/holds/*/confirm", [], []],
  ["POST", "/v1/holds/*/holds/*/release", [], []],
  ["POST", "/v1/boards/*/scores", ["key", "operation"], []],
  ["DELETE", "/v1/boards/*/players/*", [], []],
  ["POST", "/v1/accounts/*/lock", [], []],
  ["POST", "/v1/accounts/*/unlock", [], []],
  ["POST", "/v1/accounts/*/delete", [], []],
  ["POST", "/v1/accounts/*/restore", [], []],
  ["PUT", "/v1/sessions/*", [], ["If-Match", "If-None-Match"]],
  ["DELETE", "/v1/sessions/*", [], ["If-Match"]],
  ["POST", "/v1/avatars", ["key"], []],
  ["DELETE", "/v1/avatars/*", [], ["If-Match"]],
  ["PUT", "/v1/avatars/*/scene", [], ["from"]],
  ["DELETE", "/v1/avatars/*/scene", [], []],
  ["POST", "/v1/scenes", ["key"], []],
  ["DELETE", "/v1/scenes/*", [], ["If-Match"]]
];

// src/server/backend.ts
var revocation = ({ before, durable }) => ({
  body: { ...before !== void 0 && { before: Number(before) }, ...durable && { durable } },
  repeatable: true
});
var Backend = class {
  constructor(urls, options = {}) {
    this.api = new Api(urls, options);
    this.retryFor = options.retryFor ?? 1e4;
    this.kit = new Kit(this);
  }
  /** Pushes to one kind of target. With several targets, look at the `error` of each result. */
  push(push) {
    return this.call("POST", "/v1/push", { body: push });
  }
  /** Up to 1000 pushes. Each item of `results` is the answer to one push. */
  batch(messages) {
    return this.call("POST", "/v1/push/batch", { body: { messages } });
  }
  channels(query = {}) {
    return this.call("GET", "/v1/channels", { query });
  }
  channel(channel) {
    return this.call("GET", `/v1/channels/${encodeURIComponent(channel)}`);
  }
  /** Stored messages above `after`. With `wait` (seconds), an empty page waits for the next one. */
  history(channel, query = {}) {
    return this.call("GET", `/v1/channels/${encodeURIComponent(channel)}/history`, {
      query,
      wait: (query.wait ?? 0) * 1e3
    });
  }
  presence(channel, query = {}) {
    return this.call("GET", `/v1/channels/${encodeURIComponent(channel)}/presence`, { query });
  }
  /** A page of the fields of a channel. */
  state(channel, query = {}) {
    return this.call("GET", `/v1/channels/${encodeURIComponent(channel)}/state`, { query });
  }
  /** A few fields of up to 100 channels. */
  queryState(channels, fields) {
    return this.call("POST", "/v1/state/query", { body: { channels, fields } });
  }
  user(user) {
    return this.call("GET", `/v1/users/${encodeURIComponent(user)}`);
  }
  /**
   * The users that are online. `count` counts a user on two servers twice. `distinct`, of the first page, counts it once; if it
   * is not `exact`, with a standard error of 0.8 %. With the limit 0, the answer has no `users`.
   */
  users(query = {}) {
    return this.call("GET", "/v1/users", { query });
  }
  /** Whether up to 1000 users are online. */
  online(users) {
    return this.call("POST", "/v1/users/query", { body: { users } });
  }
  client(client) {
    return this.call("GET", `/v1/clients/${encodeURIComponent(client)}`);
  }
  /**
   * Messages above `after` that wait for a client. None is acknowledged. With `wait` (seconds), an
   * empty page waits for the next one.
   */
  queue(client, query = {}) {
    return this.call("GET", `/v1/clients/${encodeURIComponent(client)}/queue`, {
      query,
      wait: (query.wait ?? 0) * 1e3
    });
  }
  /**
   * Refuses the tokens of a user that were issued before a time, absent: now. Connections that used
   * them are closed as `expired`. The key needs the scope admin.
   */
  revokeUser(user, options = {}) {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/revoke`, revocation(options));
  }
  /** Like revokeUser, for one client of the user, by its full id. */
  revokeClient(client, options = {}) {
    return this.call("POST", `/v1/clients/${encodeURIComponent(client)}/revoke`, revocation(options));
  }
  /**
   * Subscribes all clients of a user to channels, also those that connect later. With `after`, the
   * first subscription of each client begins after this message of one channel, or with 0 at the
   * oldest one that is kept. The key needs the scope admin.
   */
  subscribeUser(user, channels, options = {}) {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/subscribe`, { body: { channels, ...options } });
  }
  /** Like subscribeUser, for one client, by its full id. */
  subscribeClient(client, channels, options = {}) {
    return this.call("POST", `/v1/clients/${encodeURIComponent(client)}/subscribe`, { body: { channels, ...options } });
  }
  /** Ends subscriptions of all clients of a user, also of those that are away. */
  unsubscribeUser(user, channels) {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/unsubscribe`, { body: { channels } });
  }
  /** Like unsubscribeUser, for one client, by its full id. */
  unsubscribeClient(client, channels) {
    return this.call("POST", `/v1/clients/${encodeURIComponent(client)}/unsubscribe`, { body: { channels } });
  }
  /** How many objects a user has, and may have. Kinds that the broker does not have are missing. */
  budget(user) {
    return this.call("GET", `/v1/users/${encodeURIComponent(user)}/budget`);
  }
  /**
   * Removes what a user has in the kit, because the user does not exist any more: memberships and
   * empty rooms, scores, avatars and session documents. `removed` has the numbers by kind.
   */
  forgetUser(user) {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/forget`);
  }
  disconnectUser(user) {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/disconnect`);
  }
  disconnectClient(client) {
    return this.call("POST", `/v1/clients/${encodeURIComponent(client)}/disconnect`);
  }
  servers() {
    return this.call("GET", "/v1/servers");
  }
  /** The instance that answers, and what the key may do. Every key may call it. */
  self() {
    return this.call("GET", "/v1/self");
  }
  /** The figures of all live instances. partial: one did not answer and is missing. */
  stats() {
    return this.call("GET", "/v1/stats");
  }
  /** Explains what a client may do on a channel. A bad token is no refusal: see Rights.error. */
  check(query) {
    return this.call("POST", "/v1/check", { body: query });
  }
  /** The state of the events for your backend; not_found if the broker sends none. */
  webhooks() {
    return this.call("GET", "/v1/webhooks");
  }
  /** Events that are no longer sent. A page may be short, and have a `cursor`. */
  deadLetters(query = {}) {
    return this.call("GET", "/v1/webhooks/dead", { query });
  }
  /** Sends the dead letters again. The key needs the scope admin. */
  retryDeadLetters() {
    return this.call("POST", "/v1/webhooks/dead/retry");
  }
  /** Sends one dead letter again. The key needs the scope admin. */
  async retryDeadLetter(event) {
    await this.call("POST", `/v1/webhooks/dead/${encodeURIComponent(event)}/retry`);
  }
  /** Drops one dead letter: its event is never sent. The key needs the scope admin. */
  async dropDeadLetter(event) {
    await this.call("DELETE", `/v1/webhooks/dead/${encodeURIComponent(event)}`);
  }
  /** What needs the attention of an operator, on all instances and in Redis. */
  health() {
    return this.call("GET", "/v1/health");
  }
  /**
   * Erases a message of a channel: its data and its author leave the store, the histories and the memory of all
   * brokers. Clients receive its id. Its changes of fields stay. not_found if the channel has no such message.
   */
  erase(message) {
    return this.call("POST", "/v1/erase", { body: message });
  }
  /** Says that your backend has written messages to the queues of these in Redis. */
  async notify(queues) {
    await this.call("POST", "/v1/notify", { body: queues });
  }
  /** Answers a request that a worker has taken from Redis. */
  async reply(client, ref, data) {
    await this.call("POST", "/v1/reply", { body: { client, ref, data } });
  }
  /** Any call of the API: the path has its names escaped. */
  async call(method, path2, options = {}) {
    const backoff = new Backoff(100, 2e3);
    const end = Date.now() + this.retryFor;
    for (; ; ) {
      try {
        return await this.api.call(method, path2, options);
      } catch (error) {
        const { code, retryAfter = 0 } = error;
        const unknown = ["lost", "unavailable", "timeout"].includes(code);
        const again = code === "rate_limited" || unknown && (options.repeatable ?? mayRepeat(method, path2, options));
        const delay = Math.max(backoff._next(), retryAfter * 1e3);
        if (!again || Date.now() + delay > end) throw error;
        await new Promise((resolve) => setTimeout(resolve, delay));
      }
    }
  }
};
function mayRepeat(method, path2, { headers, body }) {
  if (method === "GET") return true;
  const segments = path2.split("/");
  const rule = repeats.find(([ruleMethod, pattern]) => {
    const want = pattern.split("/");
    return ruleMethod === method && want.length === segments.length && want.every((segment, i) => segment === "*" || segment === segments[i]);
  });
  if (!rule) return false;
  const [, , members, conditions] = rule;
  const has = (name) => headers?.[name] !== void 0 || hasMember(body, name);
  return (members.length === 0 || members.some(has)) && !conditions.some(has);
}
function hasMember(body, name) {
  if (typeof body !== "object" || body === null) return false;
  const { messages, [name]: value } = body;
  if (Array.isArray(messages) && messages.length > 0) return messages.every((m) => hasMember(m, name));
  return value !== void 0 && value !== null && value !== "";
}

// src/server/index.ts
var import_errors3 = require("../index.cjs");

// src/server/token.ts
async function signToken(secret, claims, options = {}) {
  const bytes = bytesOf(secret);
  if (bytes.length < 32)
    throw new RangeError(`the secret has ${bytes.length} bytes, at least 32 are needed (RFC 7518)`);
  const iat = Math.floor(Date.now() / 1e3);
  const header2 = { alg: "HS256", typ: "JWT", ...options.kid !== void 0 && { kid: options.kid } };
  const signed = `${encode(header2)}.${encode({ iat, exp: iat + (options.expiresIn ?? 300), ...claims })}`;
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytesOf(signed)));
  return `${signed}.${base64url(signature)}`;
}
var encode = (value) => base64url(bytesOf(jsonOf(value, "the token")));
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
function bytesOf(text) {
  return typeof text === "string" ? new TextEncoder().encode(text) : new Uint8Array(text);
}

// src/server/signature.ts
async function verifySignature(secrets, headers, body, tolerance = 300) {
  const timestamp = header(headers, "switchboard-timestamp");
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1e3 - Number(timestamp)) > tolerance) return false;
  const bytes = bytesOf(body);
  const prefix = bytesOf(`${timestamp}.`);
  const signed = new Uint8Array(prefix.length + bytes.length);
  signed.set(prefix);
  signed.set(bytes, prefix.length);
  const given = header(headers, "switchboard-signature").split(",").map((s) => /^\s*v1=([0-9a-f]{64})\s*$/.exec(s)?.[1]);
  for (const secret of [secrets].flat()) {
    const key = await crypto.subtle.importKey("raw", bytesOf(secret), { name: "HMAC", hash: "SHA-256" }, false, [
      "verify"
    ]);
    for (const hex of given) {
      if (hex && await crypto.subtle.verify("HMAC", key, bytesOfHex(hex), signed)) return true;
    }
  }
  return false;
}
async function parseSigned(secrets, headers, body, tolerance) {
  if (!await verifySignature(secrets, headers, body, tolerance)) throw new Error("the signature is not valid");
  return JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
}
function header(headers, name) {
  if (typeof headers.get === "function") return headers.get(name) ?? "";
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return String(found ?? "");
}
function bytesOfHex(hex) {
  return new Uint8Array(hex.match(/../g).map((pair) => parseInt(pair, 16)));
}
// Annotate the CommonJS export names for ESM import in node:
0 && (module.exports = {
  ApiError,
  Backend,
  Kit,
  SwitchboardError,
  parseSigned,
  signToken,
  verifySignature
});
//# sourceMappingURL=index.cjs.map
