import { Backoff } from "./backoff.js";
import { ChannelCalls } from "./channelcalls.js";
import { SwitchboardError } from "./errors.js";
import type { Gap } from "./feed.js";
import { jsonOf } from "./json.js";
import { Loader, checkPosition, type Loaded, type LoadHost } from "./load.js";
import { Members } from "./members.js";
import type { ChannelEvents, ChannelOptions, Subscribed } from "./options.js";
import { State } from "./state.js";
import type { Switchboard } from "./switchboard.js";
import { transact, type Draft, type TransactOptions } from "./transact.js";
import type { Incoming, Json, JsonInput, Outgoing } from "./wire.js";

/** A channel. It stays subscribed over all reconnects, until `unsubscribe`. */
export class Channel<
  Data = Json,
  Fields extends object = Record<string, Json>,
  Snapshot extends Loaded = Loaded,
> extends ChannelCalls<Data, Fields, ChannelEvents<Data, Snapshot>> {
  /** @internal The subscription is wanted. */
  _wanted = false;
  private _endedBy: SwitchboardError | undefined; // until the subscription is wanted again
  private _active = false; // `subscribed` has arrived on this connection
  private _pending: Outgoing | undefined; // the subscribe without an answer
  private _due = false; // a subscribe will be made in a microtask
  private readonly _holders = new Set<object>(); // parts of the application; the channel itself is one of them
  private _retry: Backoff;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _waiters: { resolve: (s: Subscribed) => void; reject: (e: SwitchboardError) => void }[] = [];
  private _selector: string | undefined; // prefix of the wanted fields
  private _answeredSelector: string | undefined; // of those that the connection sends
  private _state: State<Fields> | undefined;
  private _series = 0; // id of the newest series of pages; 0 if another one follows
  private _seriesDone = false;
  private _members: Members | undefined;
  private _loader: Loader<Snapshot> | undefined;
  private _shown: string | undefined; // the JSON that `here` shows; undefined for nothing
  private _hereTimer: ReturnType<typeof setTimeout> | undefined;
  private _hereDue = false;

  /** @internal Receives `join` and `leave` instead of the members. */
  _onPresence: ((m: Incoming) => void) | undefined;

  /** @internal */
  constructor(name: string, sb: Switchboard) {
    super(name, sb);
    this._retry = sb._newBackoff();
  }

  /** @internal */
  _configure(o: ChannelOptions<Snapshot>): void {
    checkPosition(o.after);
    if (o.load) this._keepLoaded(o.load, o.after);
    if (o.after !== undefined && !this._wanted) this._restartAt(o.after);
    if (o.state !== undefined && o.state !== false) this._keepState(o.state === true ? "" : o.state);
    if (o.presence) this._keepMembers();
    if (o.subscribe !== false) this._hold(this, o.subscribe);
  }

  /** The live fields. The first use adds them to the subscription. */
  get state(): State<Fields> {
    return this._state ?? this._keepState("");
  }

  /** The live members. The first use adds them to the subscription. */
  get members(): Members {
    return this._members ?? this._keepMembers();
  }

  /** Resolves when the broker has accepted the subscription, and rejects if it refuses it. */
  async subscribe(options: Omit<ChannelOptions<Snapshot>, "subscribe"> = {}): Promise<Subscribed> {
    this._configure({ ...options, subscribe: true });
    if (this._active && !this._due && !this._pending) return { id: this._received, recovered: true };
    if (this._sb._closed) throw this._sb._closed;
    return new Promise((resolve, reject) => this._waiters.push({ resolve, reject }));
  }

  /**
   * Subscribes for one part of the application. The returned function ends the subscription, unless
   * another part holds it, or you have subscribed by `channel` or `subscribe`.
   */
  hold(): () => Promise<void> {
    const holder = {};
    this._hold(holder);
    return async () => {
      if (this._holders.delete(holder) && !this._holders.size) await this.unsubscribe();
    };
  }

  /** Ends the subscription for all parts, and forgets the position, the state and the members. */
  async unsubscribe(): Promise<void> {
    const sent = this._active || this._pending;
    this._end(new SwitchboardError("unsubscribed", `${this.name} was unsubscribed`));
    if (sent) await this._ask({ type: "unsubscribe" });
  }

  /**
   * Reads and writes fields as properties of a draft: `await room.transact((s) => { s.turn =
   * next(s.turn); })`. It is published under the condition that no field that was read has changed.
   * After a conflict, `change` is called again with the current values. Returns its result.
   */
  transact<Result>(
    change: (fields: Draft<Fields>) => Result | Promise<Result>,
    options: TransactOptions = {},
  ): Promise<Result> {
    return transact(this as unknown as Channel<Json, Fields>, change, options);
  }

  /**
   * Shows a value to the members that watch: a cursor, or "is typing". It is not stored. At most
   * every 50 ms the newest value is sent, and again after a reconnect. null ends it.
   */
  here(value: JsonInput): void {
    this._shown = jsonOf(value ?? null, "here");
    this._hereDue = true;
    if (!this._hereTimer) this._sendHere();
  }

  // What follows is called by the Switchboard.

  /** @internal */
  _receive(m: Incoming): void {
    if (!this._active) return; // of an earlier subscription: it arrives again
    switch (m.type) {
      case "message":
        return this._message(m);
      case "gap":
        this._series = 0;
        return this._gap(m.after, m.id!);
      case "state":
        return this._page(m);
      case "unsubscribed":
        if (!this._pending) this._refused(new SwitchboardError(m.code ?? "", m.message ?? "", m), "ended");
        return;
      default: // join, leave, presence, here
        if (this._onPresence) this._onPresence(m);
        else this._members?._apply(m);
    }
  }

  /** @internal A connection is open. */
  _connected(): void {
    if (this._wanted) this._subscribe();
  }

  /** @internal The connection has ended. */
  _lost(): void {
    this._active = false;
    this._pending = undefined;
    clearTimeout(this._timer);
  }

  /**
   * @internal The backend has subscribed the client: from now on the subscription is wanted. A
   * channel with a position, a loader, the state or the members subscribes by itself.
   */
  _adopt(m: Incoming): void {
    if (this._wanted) return;
    this._hold(this);
    const kept = this._loader ?? this._selector ?? this._members ?? this._received;
    if ((kept ?? this._sb._savedPosition(this.name)) === undefined) {
      this._due = false;
      this._subscribed(m, m);
    }
    this._sb._emit("subscribed", this as unknown as Channel);
  }

  /** @internal Ends the subscription. With `forget`, also what it knows. */
  _end(error: SwitchboardError, forget = true): void {
    this._lost();
    this._wanted = this._due = false;
    this._endedBy = error;
    this._holders.clear();
    clearTimeout(this._hereTimer);
    this._hereTimer = this._shown = undefined;
    this._members?._stop();
    if (forget) {
      if (this._loader) this._loader._due = true;
      this._restartAt(undefined);
      this._sb._forgetPosition(this.name);
      this._members?._forget();
      this._state?._restart();
    }
    this._state?._ended(error);
    for (const w of this._waiters.splice(0)) w.reject(error);
  }

  /** @internal */
  override _deliver(m: Incoming): Promise<unknown> | undefined {
    const changed = this._state?._message(m);
    if (this._loader && m.id! <= this._loader._loadedTo) return changed;
    return changed && m.data !== undefined ? changed.then(() => super._deliver(m)) : (super._deliver(m) ?? changed);
  }

  /** @internal */
  override _missed(gap: Gap): Promise<unknown> | undefined {
    const handled = super._missed(gap);
    if (!this._loader) return handled;
    // A gap may arrive after a later message. After a reset, the position is of other ids.
    const from = gap.id < gap.after! ? gap.id : Math.max(gap.id, this.position ?? 0);
    return Promise.resolve(handled).then(() => this._runLoad(from, gap.id));
  }

  private _restartAt(after: number | undefined): void {
    this._epoch++;
    if (this._loader) this._generation++;
    this._series = 0;
    this._active = false;
    this._start(after);
  }

  private _keepLoaded(load: () => Snapshot | Promise<Snapshot>, after: number | undefined): void {
    if (after !== undefined) throw new TypeError("after: with `load`, it returns the position");
    if (this._loader) return;
    const host: LoadHost<Snapshot> = {
      _load: load,
      _timeout: this._sb._timeout,
      _loaded: (snapshot) => (this as unknown as Channel)._emit("loaded", snapshot),
      _rewind: (position, delay) => this._rewind(position, delay),
      _loadFailed: (error) => this._sb._report(error, "load", this.name),
    };
    this._loader = new Loader(host, this._sb._newBackoff());
    if (this._active) this._startLoad();
  }

  /** Loads, before the messages that follow. */
  private _startLoad(): void {
    if (!this._loader?._due) return;
    this._loader._due = false;
    const from = this._received ?? 0;
    this._queue._push(() => this._runLoad(from, 0));
  }

  private async _runLoad(from: number, oldest: number): Promise<void> {
    const generation = this._generation;
    await this._loader?._run(from, oldest, () => generation === this._generation);
  }

  /** Ends the subscription, and begins another one at a position after a delay in ms. */
  private _rewind(after: number | undefined, delay: number): void {
    const sent = this._active || this._pending;
    this._restartAt(after);
    this._lost();
    if (sent) void this._ask({ type: "unsubscribe" }).catch(() => {}); // a lost connection subscribes again
    if (delay) this._timer = setTimeout(() => this._subscribe(), delay);
    else if (this._sb._isConnected) this._subscribe();
  }

  private _keepState(prefix: string): State<Fields> {
    this._state ??= new State<Fields>(this._failed, () => this._sb._closed ?? this._endedBy);
    if (this._selector !== prefix) {
      const state = this._state;
      this._selector = prefix;
      this._queue._push(() => state._restart());
      this._series = 0;
      if (this._wanted) this._want();
    }
    return this._state;
  }

  private _keepMembers(): Members {
    if (!this._members) {
      this._members = new Members(this as unknown as Channel);
      if (this._wanted) this._want();
    }
    return this._members;
  }

  private _hold(holder: object, again = false): void {
    this._holders.add(holder);
    if (again || !this._wanted) this._want();
  }

  /** Subscribes when the code that configures the channel has run. */
  private _want(): void {
    this._wanted = true;
    this._endedBy = undefined;
    if (this._due) return;
    this._due = true;
    queueMicrotask(() => {
      if (!this._due) return;
      this._due = false;
      if (this._sb._isConnected) this._subscribe();
    });
  }

  private _subscribe(): void {
    this._due = false;
    clearTimeout(this._timer);
    if (this._received === undefined && !this._loader) this._start(this._sb._savedPosition(this.name));
    const message: Outgoing = {
      type: "subscribe",
      channel: this.name,
      after: this._received,
      presence: this._members ? true : undefined,
      state: this._selector === undefined ? undefined : this._selector || true,
      held: this._holds() || undefined,
    };
    this._pending = message;
    this._sb._calls._submit(
      message,
      0,
      (m) => this._pending === message && this._subscribed(message, m),
      (error) => this._pending === message && this._subscribeFailed(error),
    );
  }

  /** Reports whether the queued pages and messages give all fields at the position. */
  private _holds(): boolean {
    // Below the id of the pages it is not so: a failover may have lost the messages in between.
    return this._selector !== undefined && this._series > 0 && this._seriesDone && this._received! >= this._series;
  }

  private _subscribed(asked: Outgoing, m: Incoming): void {
    const continues = this._active && m.recovered === undefined;
    this._pending = undefined;
    this._active = true;
    this._answeredSelector = asked["state"] === true ? "" : (asked["state"] as string | undefined);
    this._retry._forget();
    if (!continues && !(asked["held"] && m.recovered)) this._series = 0;
    this._answered(asked["after"] as number | undefined, m);
    this._startLoad();
    if (this._members) void this._members._read();
    if (this._shown !== undefined) {
      this._hereDue = true;
      this._sendHere();
    }
    const subscribed = { id: m.id, recovered: m.recovered !== false };
    for (const w of this._waiters.splice(0)) w.resolve(subscribed);
    this._emit("subscribed", subscribed);
  }

  private _subscribeFailed(error: SwitchboardError): void {
    this._pending = undefined;
    if (error.code === "lost" || error.code === "closed") return;
    if (error.retryable) {
      this._timer = setTimeout(() => this._subscribe(), Math.max(this._retry._next(), error.retryIn ?? 0));
    } else this._refused(error);
  }

  private _refused(error: SwitchboardError, how = "refused"): void {
    const handled = this._has("unsubscribed") || this._waiters.length || this._state?._waited;
    this._end(error);
    const remedy = how === "refused" ? error.code : how;
    this._sb._warn(remedy, `the broker has ${how} the subscription to ${this.name}: ${error.message}`, handled);
    this._emit("unsubscribed", error);
  }

  private _page(m: Incoming): void {
    if (this._answeredSelector !== this._selector) return; // of the fields that were wanted before
    if (!this._state || (!m.first && (this._series !== m.id || this._seriesDone))) return;
    this._series = m.id!;
    this._seriesDone = !m.more;
    const state = this._state;
    this._queue._push(() => state._page(m));
  }

  private _sendHere(): void {
    clearTimeout(this._hereTimer);
    this._hereTimer = undefined;
    if (!this._hereDue || !this._active) return;
    this._hereDue = false;
    this._sb._send(`{"type":"here","channel":${JSON.stringify(this.name)},"data":${this._shown}}`, 1);
    if (this._shown === "null") this._shown = undefined;
    this._hereTimer = setTimeout(() => this._sendHere(), 50);
  }
}
