import { Backoff } from "./backoff.js";
import { Calls } from "./calls.js";
import { canDrawSecrets, randomText } from "./change.js";
import { Channel } from "./channel.js";
import { urlsOf } from "./config.js";
import type { End, SocketClass } from "./connection.js";
import { Dialer } from "./dialer.js";
import { Emitter } from "./emitter.js";
import { SignedOutError, SwitchboardError, remedies } from "./errors.js";
import { Feed } from "./feed.js";
import { listen } from "./foreground.js";
import { Inbox } from "./inbox.js";
import { jsonOf } from "./json.js";
import type { Loaded } from "./load.js";
import type { ChannelOptions, Logger, Options, SwitchboardEvents } from "./options.js";
import { snapshot } from "./positions.js";
import { Store, type Saved } from "./storage.js";
import { Tokens } from "./token.js";
import { User } from "./user.js";
import type { CloseCode, Incoming, Json, JsonInput, Outgoing } from "./wire.js";

/** After these reasons the next attempt goes to the same instance: they are about this client. */
const sameInstance: string[] = ["expired", "unauthorized", "slow", "idle"];

/** Ends that the application or its backend has asked for. */
const asked: string[] = ["token", "disconnected"];
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
  private readonly _o: Options;
  private readonly _info: unknown;
  /** @internal */
  readonly _calls = new Calls();
  private readonly _channels = new Map<string, Channel>();
  private readonly _users = new Map<string, User>();
  private readonly _tokens: Tokens;
  private readonly _backoff: Backoff; // of the token function, and of handlers that are too slow
  private readonly _instance = randomText();
  private _saved: Saved | undefined;
  private readonly _dialer: Dialer;
  private _attempt = 0; // counts the connects
  private _failures: number; // of attempts before the first connection, until they are reported
  private readonly _warned = new Set<string>();
  private _tokenIgnored = false; // which was reported
  /** @internal The error of everything that is called after the end. */
  _closed: SwitchboardError | undefined;
  private _renewTimer: ReturnType<typeof setTimeout> | undefined;
  private _unlisten: (() => void)[] = [];

  constructor(urls: string | string[], options: Options = {}) {
    super((error, event) => this._report(error, event));
    const list = urlsOf(urls, "ws");
    this._o = options;
    this._info = options.info === undefined ? undefined : JSON.parse(jsonOf(options.info, "info"));
    this._failures = list.length;
    const { connectTimeout = 10_000, pingAfter = 10_000, pingTimeout = 5000 } = options;
    this._dialer = new Dialer(list, this._socketClass, { connectTimeout, pingAfter, pingTimeout }, this);
    this._tokens = new Tokens(options.token, options.tokenTimeout ?? 30_000);
    this._backoff = this._newBackoff();
    this._store = new Store(
      options.storage,
      options.storageKey ?? "switchboard",
      () => snapshot(this._saved!, this.inbox, this.all, this._channels.values()),
      (e) => this._report(e, "storage"),
    );
    if (options.autoConnect === false) return;
    this._socketClass();
    queueMicrotask(() => this.phase === "idle" && this.connect());
  }

  private readonly _socketClass = (): SocketClass => {
    const found = this._o.WebSocket ?? (globalThis as { WebSocket?: unknown }).WebSocket;
    if (typeof found === "function") return found as SocketClass;
    throw new TypeError("there is no WebSocket: give the class of the package ws as the option WebSocket");
  };

  /** Connects, unless `autoConnect` has done so. */
  connect(): void {
    if (this.phase !== "idle") return;
    this._socketClass();
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
      if (this.phase !== "closed") this._dialer._next();
    });
  }

  /** Acknowledges what is handled, and ends the connection for good. */
  async close(): Promise<void> {
    this._stop("closed", "the Switchboard was closed");
    await this._store._flush();
  }

  /**
   * Connects now instead of after the backoff, or verifies the connection. In a browser this
   * happens when the page becomes visible or the network returns, and with the option `appState`
   * when an application becomes active. Call it elsewhere. A delay that the broker has asked for
   * stays.
   */
  wake(): void {
    if (this._isConnected) this._dialer._connection!._check();
    else if (this._saved && this.phase !== "closed") this._dialer._wake();
  }

  /**
   * A channel, subscribed at once unless `subscribe` is false. The same name is the same channel.
   */
  channel<Data = Json, Fields extends object = Record<string, Json>, Snapshot extends Loaded = Loaded>(
    name: string,
    options: ChannelOptions<Snapshot> = {},
  ): Channel<Data, Fields, Snapshot> {
    if (!name || typeof name !== "string") throw new TypeError(`channel: ${name} is no name`);
    let channel = this._channels.get(name);
    if (!channel) this._channels.set(name, (channel = new Channel(name, this)));
    channel._configure(options as ChannelOptions);
    return channel as unknown as Channel<Data, Fields, Snapshot>;
  }

  /** Whether a user is online. */
  user(name: string): User {
    let user = this._users.get(name);
    if (!user) this._users.set(name, (user = new User(name, this)));
    else user._subscribe();
    return user;
  }

  /** Asks your backend, and returns its answer. */
  async request<Answer = Json>(data: JsonInput, options: { timeout?: number } = {}): Promise<Answer> {
    return (await this._call({ type: "request", data }, options.timeout)).data as Answer;
  }

  /** Calls a method of the broker, and returns its answer. */
  async call<Answer = Json>(method: string, data?: JsonInput, options: { timeout?: number } = {}): Promise<Answer> {
    return (await this._call({ type: "request", method, data }, options.timeout)).data as Answer;
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
  _newBackoff(urls = 1): Backoff {
    const { backoffMin = 200, backoffMax = 20_000 } = this._o;
    return new Backoff(backoffMin, backoffMax, 4 * backoffMin * (2 * urls - 1));
  }

  /** @internal */
  get _timeout(): number {
    return this._o.timeout ?? 30_000;
  }

  /** @internal */
  async _call(message: Outgoing, timeout = this._timeout): Promise<Incoming> {
    try {
      return await new Promise<Incoming>((resolve, reject) => this._calls._submit(message, timeout, resolve, reject));
    } catch (error) {
      (Error as { captureStackTrace?: (e: unknown) => void }).captureStackTrace?.(error); // with the caller
      throw error;
    }
  }

  /** @internal Sends a message that has no answer. */
  _send(text: string, weight = 0): void {
    if (!this._isConnected) return;
    this._calls._count(weight, text.length);
    this._dialer._connection!._sendText(text);
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
  _log(level: keyof Logger, text: string): void {
    try {
      this._o.logger?.[level]?.(`switchboard: ${text}`);
    } catch (error) {
      console.error(error);
    }
  }

  /** @internal Reports something, on the console if the application does not handle it, once. */
  _warn(code: string, text: string, handled: unknown): void {
    if (remedies[code]) text += `. ${remedies[code]}`;
    this._log("warn", text);
    if (handled || this._o.logger || this._warned.has(text)) return;
    this._warned.add(text);
    console.warn(`switchboard: ${text}`);
  }

  /** @internal An error for which no call waits, such as that of a handler. */
  _report(error: unknown, event: string, channel?: string): void {
    if (event !== "error" && this._has("error")) this._emit("error", error, { event, channel });
    else if (event === "token") {
      const { cause } = error as Error;
      this._warn(event, `${error}: ${cause}`, cause instanceof SignedOutError);
    } else if (typeof reportError === "function") reportError(error);
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

  /** @internal */
  async _prepare(): Promise<number> {
    if ([this.all, ...this._channels.values()].some(({ _queue }) => _queue._length > maxWaiting / 2)) {
      return this._backoff._next();
    }
    this.phase = "connecting";
    try {
      await this._tokens._ensure();
      this._backoff._forget();
      return 0;
    } catch (error) {
      if ((this.phase as string) === "closed") return 0;
      this._report(error, "token");
      const { message, cause } = error as Error;
      const retryIn = this._backoff._next();
      this.phase = "waiting";
      if (cause instanceof SignedOutError) this._stop("token", String(cause));
      else this._emit("disconnected", { code: "token", message, retryIn });
      return retryIn;
    }
  }

  /** @internal */
  _hello(): Outgoing {
    const { client = "auto", user } = this._o;
    const token = this._tokens._current;
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
      info: this._info,
      client: name,
      secret: anonymous ? this._saved!.secret : undefined,
      after: this.all._received,
      instance: this._instance,
      attempt: ++this._attempt,
    };
  }

  /** @internal */
  _receive(m: Incoming, size: number, url: string): void {
    if (m.type === "connected") return this._connected(m, url);
    if (m.ref !== undefined) return this._calls._answer(m, size);
    const { type, channel } = m;
    if (type === "state") this._calls._count(size / 1024, 0); // a page that this client has asked for
    const feed = channel === undefined ? this.inbox : channel === this.all.name ? this.all : undefined;
    if (type === "subscribed") this.channel(channel!, { subscribe: false })._adopt(m);
    else if (!feed) this._channels.get(channel!)?._receive(m);
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
    this._failures = 0;
    this._dialer._accepted();
    this._tokens._accepted();
    this._scheduleRenewal(this._tokens._renewIn);
    this.all._answered(this.all._received, m);
    this.inbox._ack();
    this._log("info", `connected to ${url} as ${client}`);
    if (m.token_ignored && !this._tokenIgnored) {
      this._tokenIgnored = true;
      this._warn("ignored", "the broker has ignored the token", false);
    }
    this._calls._connected(
      m.limits,
      (text) => this._dialer._connection?._sendText(text),
      () => {
        for (const channel of this._channels.values()) channel._connected();
      },
    );
    this._emit("connected", { url, client, user: m.user, server: m.server!, queued: m.queued ?? 0 });
  }

  /** @internal */
  _ended(end: End): void {
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
    const retryIn = this._dialer._again(afterMs, sameInstance.includes(code));
    if (!retryIn) this.phase = "connecting";
    if (--this._failures === 0) {
      this._warn("lost", `cannot connect: ${message}`, this._has("disconnected"));
    }
    this._log("warn", `${code}: ${message}; next attempt in ${Math.round(retryIn)} ms`);
    this._emit("disconnected", { code, message, retryIn });
  }

  private _disconnect(): void {
    if (this.phase !== "closed") this.phase = "waiting";
    clearTimeout(this._renewTimer);
    this._calls._lost();
    for (const channel of this._channels.values()) channel._lost();
  }

  private _stop(code: CloseCode | "closed" | "token", message: string): void {
    if (this.phase === "closed") return;
    this.inbox._stop();
    this.phase = "closed";
    this._dialer._stop();
    this._disconnect();
    const error = (this._closed = new SwitchboardError("closed", `closed: ${message}`));
    this._calls._stop(error);
    for (const channel of this._channels.values()) channel._end(error, false);
    for (const remove of this._unlisten.splice(0)) remove();
    if (code === "closed") this._log("info", message);
    else this._warn(code, `closed, ${code}: ${message}`, this._has("closed") || asked.includes(code));
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
}
