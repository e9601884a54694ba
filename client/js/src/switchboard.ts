import { Backoff } from "./backoff.js";
import { Calls } from "./calls.js";
import { canDrawSecrets, randomText } from "./change.js";
import { Channel, type ChannelOptions } from "./channel.js";
import { Connection, type End, type SocketClass } from "./connection.js";
import { Emitter } from "./emitter.js";
import { SignedOutError, SwitchboardError } from "./errors.js";
import { Feed } from "./feed.js";
import { listen } from "./foreground.js";
import { Inbox } from "./inbox.js";
import type { Logger, Options, SwitchboardEvents } from "./options.js";
import { usesToKeep } from "./positions.js";
import { Store, type Saved } from "./storage.js";
import { Tokens } from "./token.js";
import { User } from "./user.js";
import type { CloseCode, Incoming, Json, Outgoing } from "./wire.js";

/** The time after which a connection counts as good, and the backoff starts again, in ms. */
const minUptime = 10_000;

/** After these reasons the next attempt goes to the same instance: they are about this client. */
const sameInstance: string[] = ["expired", "unauthorized", "slow", "idle"];

/** The most messages of one channel that may wait for its handlers. */
const maxWaiting = 10_000;

/** Switchboard is one logical connection to a broker. It reconnects until it is closed. */
export class Switchboard extends Emitter<SwitchboardEvents> {
  /** "idle" before `connect`, "waiting" between two attempts. */
  phase: "idle" | "connecting" | "connected" | "waiting" | "closed" = "idle";
  /** The client id, with the user. Undefined before the first connection. */
  client: string | undefined;
  /** Messages to this device. */
  readonly inbox: Inbox = new Inbox("", this);
  /** Messages to all clients. */
  readonly all: Feed = new Feed("$all", this);

  /** @internal */
  readonly _store: Store;
  private readonly _urls: string[];
  private readonly _o: Options;
  /** @internal */
  readonly _calls = new Calls();
  private readonly _channels = new Map<string, Channel>();
  private readonly _users = new Map<string, User>();
  private readonly _tokens: Tokens;
  private readonly _backoff: Backoff;
  private readonly _instance = randomText();
  private _saved: Saved | undefined;
  private _next: number; // index of the next URL
  private _attempt = 0;
  /** @internal The error of everything that is called after the end. */
  _closed: SwitchboardError | undefined;
  private _connection: Connection | undefined;
  private _connectedAt = 0;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _renewTimer: ReturnType<typeof setTimeout> | undefined;
  private _waitsForServer = false; // the broker has asked for the delay
  private _unlisten: (() => void)[] = [];

  constructor(urls: string | string[], options: Options = {}) {
    super((error, event) => this._handlerFailed(error, event));
    this._urls = [urls].flat().map((url) => url.replace(/^http/, "ws"));
    this._o = options;
    this._next = Math.floor(Math.random() * this._urls.length);
    this._tokens = new Tokens(options.token, options.tokenTimeout ?? 30_000);
    this._backoff = this._newBackoff();
    this._store = new Store(
      options.storage,
      options.storageKey ?? "switchboard",
      () => this._snapshot(),
      (e) => this._report(e, "storage"),
    );
    if (options.autoConnect !== false) queueMicrotask(() => this.phase === "idle" && this.connect());
  }

  /** Connects, unless `autoConnect` has done so. */
  connect(): void {
    if (this.phase !== "idle") return;
    this.phase = "connecting";
    this._unlisten = listen(
      this._o.appState,
      () => this.wake(),
      () => void this._store._flush(),
    );
    void this._store._load().then((saved) => {
      this._saved = saved;
      this.inbox._start(saved.inbox);
      this.all._start(saved.all);
      void this._dial();
    });
  }

  /** Acknowledges what is handled, and ends the connection for good. */
  async close(): Promise<void> {
    this._stop("closed", "the Switchboard was closed");
    await this._store._flush();
  }

  /**
   * Connects now instead of after the backoff, or verifies the connection. In a browser this happens
   * when the page becomes visible or the network returns, and with the option `appState` when an application
   * becomes active. Call it elsewhere. A delay that the broker has asked for stays.
   */
  wake(): void {
    if (this._isConnected) this._connection!._check();
    else if (this.phase === "waiting" && !this._waitsForServer) {
      clearTimeout(this._timer);
      void this._dial();
    }
  }

  /**
   * A channel, subscribed at once unless `subscribe` is false. The same name is the same channel.
   */
  channel<Data = Json, Fields extends object = Record<string, Json>>(
    name: string,
    options: ChannelOptions = {},
  ): Channel<Data, Fields> {
    let channel = this._channels.get(name);
    if (!channel) this._channels.set(name, (channel = new Channel(name, this)));
    channel._configure(options);
    return channel as unknown as Channel<Data, Fields>;
  }

  /** Whether a user is online. */
  user(name: string): User {
    let user = this._users.get(name);
    if (!user) this._users.set(name, (user = new User(name, this)));
    else user._subscribe();
    return user;
  }

  /** Asks your backend, and returns its answer. */
  request<Answer = Json>(data: Json, options: { timeout?: number } = {}): Promise<Answer> {
    return this._call({ type: "request", data }, options.timeout).then((m) => m.data as Answer);
  }

  /** Calls a method of the broker, and returns its answer. */
  call<Answer = Json>(method: string, data?: Json, options: { timeout?: number } = {}): Promise<Answer> {
    return this._call({ type: "request", method, data }, options.timeout).then((m) => m.data as Answer);
  }

  /** Replaces the token, of this connection and of later ones. */
  async refresh(token: string): Promise<void> {
    if (this._isConnected) await this._call({ type: "refresh", token });
    this._tokens._set(token);
    this._tokens._accepted();
    this._scheduleRenewal(this._tokens._renewIn);
  }

  // What follows is for the other classes.

  /** @internal */
  get _isConnected(): boolean {
    return this.phase === "connected";
  }

  /** @internal */
  _newBackoff(): Backoff {
    return new Backoff(this._o.backoffMin ?? 200, this._o.backoffMax ?? 20_000);
  }

  /** @internal */
  _call(message: Outgoing, timeout = this._o.timeout ?? 30_000): Promise<Incoming> {
    return new Promise((resolve, reject) => this._calls._submit(message, timeout, resolve, reject));
  }

  /** @internal Sends a message that has no answer. */
  _send(text: string, weight = 0): void {
    if (!this._isConnected) return;
    this._calls._count(weight, text.length);
    this._connection!._sendText(text);
  }

  /** @internal A message of the inbox whose handler has failed is acknowledged. */
  get _acksFailures(): boolean {
    return this._o.ack === "auto";
  }

  /** @internal */
  _savedPosition(channel: string): number | undefined {
    const position = this._saved?.channels?.[channel]; // of a channel "constructor" it may be a function
    return typeof position === "number" ? position : undefined;
  }

  /** @internal */
  _forgetPosition(channel: string): void {
    delete this._saved?.channels?.[channel];
    if (this._saved) this._store._changed();
  }

  /** @internal */
  _handlerFailed(error: unknown, event: string, channel?: string): void {
    this._report(error, event, channel);
  }

  /** @internal */
  _log(level: keyof Logger, text: string): void {
    this._o.logger?.[level]?.(`switchboard: ${text}`);
  }

  private _report(error: unknown, event: string, channel?: string): void {
    if (event !== "error" && this._handlers.get("error")?.size) this._emit("error", error, { event, channel });
    else if (typeof reportError === "function") reportError(error);
    else console.error(error);
  }

  /**
   * @internal Ends the connection until the handlers of a channel have caught up. The broker keeps
   * the rest.
   */
  _waits(length: number): void {
    if (length > maxWaiting && this._isConnected) {
      this._ended({ code: "lost", message: "the handlers are too slow", reconnect: true, afterMs: 0 });
    }
  }

  private async _dial(): Promise<void> {
    if (this.phase === "closed") return;
    for (const { _queue } of [this.all, ...this._channels.values()]) {
      if (_queue._length > maxWaiting / 2) {
        this._timer = setTimeout(() => void this._dial(), this._backoff._next());
        return;
      }
    }
    const attempt = ++this._attempt;
    const url = this._urls[this._next % this._urls.length]!;
    this.phase = "connecting";
    this._emit("connecting", url);
    let token: string | undefined;
    try {
      token = await this._tokens._get();
    } catch (error) {
      if (attempt !== this._attempt) return; // closed meanwhile
      this._report(error, "token");
      if ((error as Error).cause instanceof SignedOutError) return this._stop("token", String((error as Error).cause));
      return this._ended({ code: "token", message: (error as Error).message, reconnect: true, afterMs: 0 });
    }
    if (attempt !== this._attempt) return;
    const { connectTimeout = 10_000, pingAfter = 10_000, pingTimeout = 5000 } = this._o;
    try {
      this._connection = new Connection(
        this._o.WebSocket ?? (globalThis as unknown as { WebSocket: SocketClass }).WebSocket,
        url,
        this._hello(token),
        { connectTimeout, pingAfter, pingTimeout },
        (m, size) => this._receive(m, size, url),
        (end) => this._ended(end),
      );
    } catch (error) {
      this._ended({ code: "lost", message: String(error), reconnect: true, afterMs: 0 });
    }
  }

  private _hello(token: string | undefined): Outgoing {
    const { client = "auto", user, info } = this._o;
    const saved = this._saved!;
    if (saved.asked !== client) this._saved = { ...saved, asked: client, name: undefined, secret: undefined };
    let name = this._saved!.name;
    if (client !== "auto") name ??= client.slice(client.lastIndexOf("/") + 1);
    else if (this._tokens._namesClient) name = undefined;
    else name ??= this._saved!.name = `c-${randomText()}`;
    const anonymous = token === undefined && user === undefined;
    if (anonymous && canDrawSecrets()) this._saved!.secret ??= randomText();
    return {
      type: "connect",
      ref: this._calls._nextRef(),
      token,
      user,
      info,
      client: name,
      secret: anonymous ? this._saved!.secret : undefined,
      after: this.all._received,
      instance: this._instance,
      attempt: this._attempt,
    };
  }

  private _receive(m: Incoming, size: number, url: string): void {
    if (m.type === "connected") return this._connected(m, url);
    if (m.ref !== undefined) return this._calls._answer(m, size);
    const { type, channel } = m;
    if (type === "state") this._calls._count(size / 1024, 0); // a page that this client has asked for
    const feed = channel === undefined ? this.inbox : channel === this.all.name ? this.all : undefined;
    if (!feed) this._channels.get(channel!)?._receive(m);
    else if (type === "message") feed._message(m);
    else if (type === "gap") feed._gap(m.after, m.id!);
    else if (type === "error") this._log("info", `refused: ${m.code} ${m.message}`);
  }

  private _connected(m: Incoming, url: string): void {
    const saved = this._saved!;
    const client = (this.client = m.client!);
    if (saved.client !== undefined && saved.client !== client) this.inbox._changed(); // another queue, with other ids
    saved.client = client;
    saved.name = client.slice(client.lastIndexOf("/") + 1); // without the user: another token may have another
    saved.secret = m.secret ?? saved.secret;
    this._store._changed();
    this.phase = "connected";
    this._connectedAt = Date.now();
    this._tokens._accepted();
    this._scheduleRenewal(this._tokens._renewIn);
    this.all._answered(this.all._received, m);
    this.inbox._ack();
    this._log("info", `connected to ${url} as ${client}`);
    this._calls._connected(
      m.limits,
      (text) => this._connection!._sendText(text),
      () => {
        for (const channel of this._channels.values()) channel._connected();
      },
    );
    this._emit("connected", { url, client, user: m.user, server: m.server!, queued: m.queued ?? 0 });
  }

  private _ended(end: End | (Omit<End, "code"> & { code: "token" })): void {
    if (this._isConnected && Date.now() - this._connectedAt >= minUptime) this._backoff._reset();
    this._disconnect();
    const { code, message, afterMs } = end;
    let { reconnect } = end;
    if (code === "expired" || code === "unauthorized") reconnect = this._tokens._refused(code === "expired");
    if (code === "superseded" && (this._o.client ?? "auto") === "auto" && !this._tokens._namesClient) {
      // Another tab has a copy of this one's storage. This client becomes another one. With a token
      // for one client it cannot: the two would supersede each other without end.
      this._saved!.name = undefined;
      reconnect = true;
    }
    if (!reconnect) return this._stop(code as CloseCode, message);
    if (!sameInstance.includes(code)) this._next++;
    const drawn = this._backoff._next();
    const retryIn = afterMs || drawn;
    this._waitsForServer = afterMs > 0;
    this._timer = setTimeout(() => void this._dial(), retryIn);
    this._log("warn", `${code}: ${message}; next attempt in ${Math.round(retryIn)} ms`);
    this._emit("disconnected", { code, message, retryIn });
  }

  private _disconnect(): void {
    if (this.phase !== "closed") this.phase = "waiting";
    this._connection?._close();
    this._connection = undefined;
    clearTimeout(this._timer);
    clearTimeout(this._renewTimer);
    this._calls._lost();
    for (const channel of this._channels.values()) channel._lost();
  }

  private _stop(code: CloseCode | "closed" | "token", message: string): void {
    if (this.phase === "closed") return;
    this.inbox._stop();
    this.phase = "closed";
    this._attempt++;
    this._disconnect();
    const error = (this._closed = new SwitchboardError("closed", `closed: ${message}`));
    this._calls._stop(error);
    for (const channel of this._channels.values()) channel._end(error, false);
    for (const remove of this._unlisten.splice(0)) remove();
    this._log(code === "closed" ? "info" : "warn", `closed: ${code}: ${message}`);
    this._emit("closed", { code, message });
  }

  private _scheduleRenewal(delay: number | undefined): void {
    clearTimeout(this._renewTimer);
    if (delay !== undefined) this._renewTimer = setTimeout(() => void this._renew(), delay);
  }

  /** Renews the token before it expires. If that fails, the connection stays until it does. */
  private async _renew(): Promise<void> {
    const attempt = this._attempt;
    try {
      await this.refresh(await this._tokens._fetch());
    } catch (error) {
      if (attempt !== this._attempt || !this._isConnected) return;
      this._report(error, "token");
      this._scheduleRenewal(1000 + 29_000 * Math.random());
    }
  }

  private _snapshot(): Saved {
    const saved = this._saved!;
    const now = Date.now();
    const used = new Map(usesToKeep(saved, now));
    const channels = new Map([...used.keys()].map((name) => [name, saved.channels![name]!]));
    for (const { name, position = channels.get(name) } of this._channels.values()) {
      if (position === undefined) continue;
      channels.set(name, position);
      used.set(name, now);
    }
    return {
      ...saved,
      inbox: this.inbox.position,
      all: this.all.position,
      channels: Object.fromEntries(channels),
      used: Object.fromEntries(used),
    };
  }
}
