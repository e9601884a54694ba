// src/config.ts
function urlsOf(urls, scheme) {
  const list = [urls].flat().map(String);
  return [...new Set(list.length ? list : [""])].map((url) => {
    const [, host, path = ""] = /^(?:ws|http)(s?:\/\/[^/?#\s]+)([^#\s]*)$/i.exec(url) ?? [];
    if (!host) throw new TypeError(`"${url}" is no URL of a broker, such as wss://push.example.com`);
    return scheme + host + (scheme === "ws" ? path.replace(/^\/?(?=\?|$)/, "/ws") : path.replace(/\/+$/, ""));
  });
}

// src/api.ts
import { SwitchboardError as SwitchboardError2 } from "../index.js";

// src/json.ts
import { SwitchboardError } from "../index.js";
function jsonOf(value, what) {
  let cause;
  try {
    const text = JSON.stringify(value);
    if (text !== void 0) return text;
  } catch (error) {
    cause = error;
  }
  const why = cause ? String(cause).split("\n")[0] : typeof value;
  throw new SwitchboardError("bad_request", `${what}: the data is not JSON: ${why}`, {}, cause);
}

// src/api.ts
var Api = class {
  constructor(urls, options = {}) {
    this.options = options;
    this.at = 0;
    this.urls = urlsOf(urls, "http");
  }
  post(path, body) {
    return this.call("POST", path, { body });
  }
  /**
   * Makes a call. If an instance cannot be reached, the next call goes to the next one. The code of
   * the error is then `lost`: a call that changes something may have been executed.
   */
  async call(method, path, { query, body, headers, key = this.options.key, wait = 0 } = {}) {
    const search = Object.entries(query ?? {}).filter(([, value]) => value !== void 0).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
    const { at } = this;
    const url = `${this.urls[at % this.urls.length]}${path}${search && `?${search}`}`;
    const content = body === void 0 ? null : jsonOf(body, path);
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
      throw new SwitchboardError2("lost", `${method} ${path}: ${why}`, {}, error2);
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
var ApiError = class extends SwitchboardError2 {
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

// src/kit/accounts.ts
import { SignedOutError } from "../index.js";

// src/kit/scram.ts
var Scram = class {
  constructor(name, password) {
    this.password = password;
    this.nonce = base64(crypto.getRandomValues(new Uint8Array(18)));
    this.expected = "";
    this.bare = `n=${name.replace(/=/g, "=3D").replace(/,/g, "=2C")},r=${this.nonce}`;
  }
  /** The first message. */
  get first() {
    return `n,,${this.bare}`;
  }
  /** Returns the second message, for the server's first one. */
  async final(serverFirst) {
    const [nonce, salt, iterations] = ["r", "s", "i"].map((name) => member(serverFirst, name));
    if (!nonce?.startsWith(this.nonce) || !salt || !(Number(iterations) >= 4096)) {
      throw new Error("the server's challenge is not valid");
    }
    const unproved = `c=biws,r=${nonce}`;
    const message = bytesOf(`${this.bare},${serverFirst},${unproved}`);
    const salted = await derive(prepare(this.password), salt, Number(iterations));
    const clientKey = await hmac(salted, bytesOf("Client Key"));
    const storedKey = new Uint8Array(await crypto.subtle.digest("SHA-256", clientKey));
    const signature = await hmac(storedKey, message);
    const proof = clientKey.map((byte, i) => byte ^ signature[i]);
    this.expected = base64(await hmac(await hmac(salted, bytesOf("Server Key")), message));
    return `${unproved},p=${base64(proof)}`;
  }
  /** Verifies the server's last message: it proves that the server knows the account. */
  verify(serverFinal) {
    if (!this.expected || member(serverFinal, "v") !== this.expected) {
      throw new Error("the server does not know the account");
    }
  }
};
function prepare(password) {
  return password.replace(/[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/g, " ").replace(/\u00ad|\u034f|\u1806|[\u180b-\u180d]|\u200c|\u200d|\u2060|[\ufe00-\ufe0f]|\ufeff/g, "").normalize("NFKC");
}
function member(message, name) {
  const found = message.split(",").find((part) => part.startsWith(`${name}=`));
  return found?.slice(2);
}
async function derive(password, salt, iterations) {
  const key = await crypto.subtle.importKey("raw", bytesOf(password), "PBKDF2", false, ["deriveBits"]);
  const bytes = Uint8Array.from(atob(salt), (c) => c.charCodeAt(0));
  const parameters = { name: "PBKDF2", hash: "SHA-256", salt: bytes, iterations };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, key, 256));
}
async function hmac(key, text) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, text));
}
function bytesOf(text) {
  return new TextEncoder().encode(text);
}
function base64(bytes) {
  return btoa(String.fromCharCode(...bytes));
}

// src/kit/accounts.ts
var Accounts = class {
  constructor(url, options = {}) {
    this.options = options;
    this.api = new Api(url, options);
  }
  /** Registers a name, and logs in. Without a name and a password it is a guest. */
  register(account = {}) {
    return this.start("/v1/accounts", account);
  }
  /**
   * Logs in by SCRAM-SHA-256: the broker verifies the password without receiving it, and proves
   * that it knows the account. It needs WebCrypto, which browsers have on pages with https.
   */
  async login(credentials) {
    const { name, password, client } = credentials;
    const scram = new Scram(name, password);
    const { challenge, message } = await this.api.post(
      "/v1/accounts/challenge",
      { message: scram.first }
    );
    const proof = { challenge, message: await scram.final(message), client };
    const answer = await this.api.post("/v1/accounts/login", proof);
    scram.verify(answer.message);
    const session = new Session(this.api, this.options);
    await session.adopt(answer);
    return session;
  }
  /** Logs in by sending the password, where there is no WebCrypto. */
  loginWithPassword(credentials) {
    return this.start("/v1/accounts/login", credentials);
  }
  /** Continues the session of a stored renewal token. */
  async resume(renewal) {
    const session = new Session(this.api, this.options);
    await session.renew(renewal);
    return session;
  }
  async start(path, body) {
    const session = new Session(this.api, this.options);
    await session.adopt(await this.api.post(path, body));
    return session;
  }
};
var Session = class {
  constructor(api, options) {
    this.api = api;
    this.options = options;
    this.renewAt = 0;
    this.given = false;
  }
  /**
   * The token function of a Switchboard. It returns the token of the login once, and then a new one
   * each time: a Switchboard asks when the last one is no longer accepted. It rejects with a
   * SignedOutError if the login has ended; a Switchboard then closes.
   */
  async token() {
    try {
      if (this.given) await this.renew();
      else await this.renewIfOld();
    } catch (error) {
      if (error.code === "unauthorized") throw new SignedOutError(error.message);
      throw error;
    }
    this.given = true;
    return this.answer.token;
  }
  /** Renews the token. One renewal at a time: a renewal token works once. */
  renew(renewal = this.answer.renewal) {
    return this.renewing ??= this.api.post("/v1/accounts/renew", { renewal }).then((answer) => this.adopt(answer)).finally(() => this.renewing = void 0);
  }
  /** Ends the login, or all logins of the account. */
  async logout(everywhere = false) {
    await this.api.post("/v1/accounts/logout", { renewal: this.answer.renewal, everywhere });
    await this.options.onRenewal?.(void 0);
  }
  async me() {
    return this.account = await this.call("GET", "");
  }
  /**
   * Changes the nickname, or the name with the current password. A guest gets both. If the account
   * has another version than `ifMatch`, the error is `conflict`.
   */
  async patch(change, condition) {
    const body = "name" in change ? () => this.proof(change) : () => change;
    return this.account = await this.call("PATCH", "", body, headersOf(condition));
  }
  /** Changes the password. All logins and connections end: log in again. */
  changePassword(password, newPassword) {
    return this.call("POST", "/password", () => ({ password, new: newPassword }));
  }
  /** Marks the account as deleted. A guest has no password. */
  delete(password = "") {
    return this.call("POST", "/delete", () => this.proof({ password }));
  }
  /** @internal */
  async adopt(answer) {
    this.answer = answer;
    this.given = false;
    this.account = answer.account;
    this.renewAt = Date.now() + answer.expires_in * 700;
    await this.options.onRenewal?.(answer.renewal);
  }
  async renewIfOld() {
    if (Date.now() >= this.renewAt) await this.renew();
  }
  /** The body of a call that needs the password. A guest has none, and shows its renewal token. */
  proof(body) {
    return this.account.name === void 0 ? { ...body, renewal: this.answer.renewal } : body;
  }
  /** Makes a call with the token. The body is made when the tokens are fresh. */
  async call(method, path, body, headers) {
    await this.renewIfOld();
    return this.api.call(method, `/v1/accounts/me${path}`, { body: body?.(), headers, key: this.answer.token });
  }
};

// src/kit/view.ts
var View = class {
  constructor(sb, channel) {
    this.channel = sb.channel(channel, { subscribe: false, state: true });
    this.release = this.channel.hold();
  }
  /** Calls a handler after each change. Returns a function that removes it. */
  on(event, handler) {
    return this.channel.state.on(event, handler);
  }
  /** Resolves when the view is complete, and rejects if the broker refuses it. */
  async ready() {
    await this.channel.state.ready();
    return this;
  }
  /** Ends the view. The channel stays subscribed if another view, or your application, uses it. */
  close() {
    return this.release();
  }
  /** The fields that begin with a prefix, by the rest of their names. */
  entriesOf(prefix) {
    return [...this.channel.state.entries()].filter(([name]) => name.startsWith(prefix)).map(([name, entry]) => [name.slice(prefix.length), entry]);
  }
};

// src/kit/boards.ts
var Boards = class {
  constructor(sb) {
    this.sb = sb;
  }
  /** Submits a score of the user. A repeat with the same `key` changes nothing. */
  submit(board, score, options = {}) {
    return this.sb.call("board.submit", { board, score, ...options });
  }
  /** The first entries, 10 if `limit` is absent. */
  top(board, options = {}) {
    return this.sb.call("board.top", { board, ...options });
  }
  /** A player, of this user if it is absent, with `limit` (5) neighbors on each side. */
  around(board, options = {}) {
    return this.sb.call("board.around", { board, ...options });
  }
  /** The place of a player, of this user if it is absent. */
  rank(board, options = {}) {
    return this.sb.call("board.rank", { board, ...options });
  }
  /** Follows the first ten. */
  follow(board) {
    return new BoardTop(this.sb, `board:${board}`);
  }
};
var BoardTop = class extends View {
  get season() {
    return this.top?.season;
  }
  /** In the order of ranks. */
  get entries() {
    return (this.top?.entries ?? []).map((entry, i) => ({ ...entry, rank: i + 1 }));
  }
  get top() {
    return this.channel.state.get("top");
  }
};

// src/kit/holds.ts
var Holds = class {
  constructor(sb) {
    this.sb = sb;
  }
  /**
   * Holds all of the places, or none. A `conflict` has `data.taken`, the seats that are not free.
   */
  take(resource, request) {
    return this.sb.call("hold.hold", { resource, ...request });
  }
  renew(resource, id) {
    return this.sb.call("hold.renew", { resource, id });
  }
  /** Ends a hold or a sale of the user. */
  release(resource, id) {
    return this.sb.call("hold.release", { resource, id });
  }
  get(resource, id) {
    return this.sb.call("hold.get", { resource, id });
  }
  /** The holds and sales of the user, the newest first, with those that ended lately. */
  async mine(resource) {
    return (await this.sb.call("hold.mine", { resource })).holds;
  }
  /** Up to 100 resources; null for one that does not exist. */
  async resources(resources) {
    return (await this.sb.call("hold.resources", { resources })).resources;
  }
  /** Follows the seats of a resource. */
  seats(resource) {
    return new SeatMap(this.sb, `hold:${resource}`);
  }
};
var SeatMap = class extends View {
  get resource() {
    return this.channel.state.get("$resource");
  }
  /** The state of a seat, and the end of its hold in ms since 1970. */
  get(seat) {
    const entry = this.channel.state.entry(`seat/${seat}`);
    return entry ? { state: entry.value.s, until: entry.until } : { state: "free" };
  }
  /** The names of the seats that are not free. */
  get taken() {
    return this.entriesOf("seat/").map(([seat]) => seat);
  }
};

// src/kit/rooms.ts
var Rooms = class {
  constructor(sb) {
    this.sb = sb;
    /** Rooms that this user may have joined, though the call failed: what ends their subscription. */
    this.undecided = /* @__PURE__ */ new Map();
  }
  /** Makes a room whose owner and first member is this user, and follows it. */
  create(room) {
    const made = (info) => new Room(this.sb, info.id, info.channel, info.n, info.code);
    return this.enter("room.create", room, room.id, made);
  }
  /**
   * Makes this user a member, and follows the room. Refusals: not_found, bad_code, locked, full.
   */
  join(room, options = {}) {
    return this.enter("room.join", { room, ...options }, room, (joined) => this.joined(joined));
  }
  /** Joins an open public room of the mode, or makes one, and follows it. */
  quick(options) {
    return this.enter("room.quick", options, void 0, (joined) => this.joined(joined));
  }
  get(room) {
    return this.sb.call("room.get", { room });
  }
  /** A page of public rooms. It may be short, or empty, and have a `cursor`. `next` is its former name. */
  list(query = {}) {
    return this.sb.call("room.list", query);
  }
  /** A page of the rooms that this user is in. */
  mine(page = {}) {
    return this.sb.call("room.mine", page);
  }
  /** Follows the newest rooms of a mode that can be joined. */
  lobby(mode, region) {
    return new Lobby(this.sb, region ? `lobby:${mode}:${region}` : `lobby:${mode}`);
  }
  joined({ room, channel, n }) {
    return new Room(this.sb, room, channel, n);
  }
  /**
   * Makes this user a member and follows the room, in one round trip if its id is known: the broker
   * handles the call and the subscription in order. If the outcome is open, the subscription stays,
   * because its end would end the membership; the next call for the room continues with it.
   */
  async enter(method, data, id, made) {
    if (!id) return made(await this.sb.call(method, data)).ready();
    const channel = this.sb.channel(`room:${id}`, { subscribe: false, state: true });
    const handled = channel.on("unsubscribed", () => {
    });
    const answer = this.sb.call(method, data);
    const release = this.undecided.get(id) ?? channel.hold();
    this.undecided.delete(id);
    try {
      return await made(await answer).ready();
    } catch (error) {
      if (isOpen(error)) this.undecided.set(id, release);
      throw error;
    } finally {
      handled();
      if (!this.undecided.has(id)) release().catch(() => {
      });
    }
  }
};
function isOpen(error) {
  return /^(rate_limited|unavailable|timeout|unknown_outcome)$/.test(error.code);
}
var Lobby = class extends View {
  /** The rooms, the newest first. */
  get rooms() {
    return this.entriesOf("room/").map(([, entry]) => entry.value).sort((a, b) => b.room.created - a.room.created || (a.id < b.id ? -1 : 1));
  }
};
var Room = class extends View {
  constructor(sb, id, channel, n, code) {
    super(sb, channel);
    this.sb = sb;
    this.id = id;
    this.n = n;
    this.code = code;
  }
  /** Undefined after the room has ended. */
  get document() {
    return this.channel.state.get("$room");
  }
  /** The members and the reserved places, by number. */
  get players() {
    return this.entriesOf("member/").map(([n, { value, away, until }]) => ({ n: Number(n), ...value, away, until })).sort((a, b) => a.n - b.n);
  }
  /** A field of a player, of this one if `n` is absent. */
  get(name, n = this.n) {
    return this.channel.state.get(`p/${n}/${name}`);
  }
  /** Sets a field of this player. It ends with the membership. */
  async set(name, value) {
    await this.channel.set(`p/${this.n}/${name}`, value);
  }
  /** Ends the membership on all devices of the user. */
  async leave() {
    const handled = this.channel.on("unsubscribed", () => {
    });
    try {
      await this.call("leave");
    } finally {
      handled();
    }
    await this.close();
  }
  /** Removes a player, or a reserved place. For the owner, like the following ones. */
  kick(n) {
    return this.call("kick", { n });
  }
  lock(locked = true) {
    return this.call("lock", { locked });
  }
  start() {
    return this.call("start");
  }
  finish() {
    return this.call("finish");
  }
  patch(patch) {
    return this.call("patch", patch);
  }
  call(method, data = {}) {
    return this.sb.call(`room.${method}`, { room: this.id, ...data });
  }
};

// src/kit/scenes.ts
var Scenes = class {
  constructor(sb) {
    this.sb = sb;
  }
  /** A repeated call with the same `key` returns the same avatar. */
  createAvatar(avatar) {
    return this.sb.call("avatar.create", avatar);
  }
  /** A page of the avatars of the user, the oldest first. */
  avatars(page = {}) {
    return this.sb.call("avatar.list", page);
  }
  /** Changes an avatar. With a `version`, only if it has it. */
  patchAvatar(avatar, patch) {
    return this.sb.call("avatar.patch", { avatar, ...patch });
  }
  deleteAvatar(avatar, version) {
    return this.sb.call("avatar.delete", { avatar, version });
  }
  /** A page of the scenes of a world. */
  list(query) {
    return this.sb.call("scene.list", query);
  }
  /** A scene with its avatars, from all pages. */
  async get(scene) {
    let online = 0;
    const avatars = [];
    for (let cursor; ; ) {
      const { cursor: next, ...page } = await this.sb.call("scene.get", { scene, cursor });
      online += page.online;
      avatars.push(...page.avatars);
      if (!next) return { ...page, online, avatars };
      cursor = next;
    }
  }
  /**
   * Follows a scene, and enters it with an avatar from no scene. Refusals: conflict (it is in
   * another scene: transfer it), locked, full, not_found. After an error the scene is not followed.
   * After a reconnect within the grace the avatar is still there.
   */
  enter(avatar, scene) {
    return this.place("scene.enter", { avatar, scene });
  }
  /** Like `enter`, from any scene, or from one. */
  transfer(avatar, scene, from) {
    return this.place("scene.transfer", { avatar, scene, from });
  }
  /** Follows a scene without entering it. */
  follow(scene) {
    return new Scene(this.sb, scene);
  }
  async place(method, data) {
    const scene = new Scene(this.sb, data.scene, data.avatar);
    try {
      await scene.ready();
      await this.sb.call(method, data);
    } catch (error) {
      scene.close().catch(() => {
      });
      throw error;
    }
    return scene;
  }
};
var Scene = class extends View {
  constructor(sb, id, avatar) {
    super(sb, `scene:${id}`);
    this.id = id;
    this.avatar = avatar;
  }
  /** The scene, undefined if it does not exist. */
  get info() {
    return this.channel.state.get("$scene");
  }
  /** The avatars that are here, online or offline. */
  get avatars() {
    return this.entriesOf("pc/").filter(([, { until, away }]) => away || until === void 0).map(([avatar, { value, away }]) => ({
      avatar,
      name: value.name,
      ...value.figure && { figure: value.figure },
      online: !away && !value.offline,
      fields: Object.fromEntries(this.entriesOf(`a/${avatar}/`).map(([name, entry]) => [name, entry.value]))
    }));
  }
  /** Sets a field of the avatar of this client, such as its position. It ends with the place. */
  async set(name, value) {
    await this.channel.set(`a/${this.avatar}/${name}`, value);
  }
};
export {
  Accounts,
  BoardTop,
  Boards,
  Holds,
  Lobby,
  Room,
  Rooms,
  Scene,
  Scenes,
  SeatMap,
  Session,
  View
};
//# sourceMappingURL=index.js.map
