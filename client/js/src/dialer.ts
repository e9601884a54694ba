import type { Backoff } from "./backoff.js";
import { now } from "./clock.js";
import { Connection, type End, type SocketClass, type Times } from "./connection.js";
import type { Incoming, Outgoing } from "./wire.js";

/** How long an attempt may be silent before the next URL is tried at the same time, in ms. */
const stagger = 1000;

/**
 * How long an attempt may be silent while there are other URLs: this time in ms, and on a slow
 * network a third of the time for which the URL has failed.
 */
const patience = 3000;

/** A connection that was open for less counts as a failure, in ms. */
const minUptime = 3000;

/** One URL, with what is known about it. Times are those of `now`. */
interface Target {
  _url: string;
  _backoff: Backoff;
  _failures: number; // in a row; -1 for the one that comes first
  _notBefore: number; // no attempt before this time
  _began: number; // when the attempt began
  _attempt?: Connection | undefined;
}

/** What the dialer needs from the Switchboard. */
export interface DialHost {
  /**
   * Returns the backoff of one of `urls` URLs. With more of them, each is tried less often: when
   * the network is back, all together bring back a client.
   */
  _newBackoff(urls?: number): Backoff;
  /** Is called before an attempt. It resolves to the time in ms to wait instead; 0 for none. */
  _prepare(): Promise<number>;
  _emit(event: "connecting", url: string): unknown;
  /** Returns the `connect` for the attempt that has opened a connection. */
  _hello(): Outgoing;
  _receive(m: Incoming, size: number, url: string): void;
  /**
   * A connection or an attempt has ended. It calls `_again`, unless there is to be no other one.
   */
  _ended(end: End): void;
}

/**
 * Dialer chooses the URLs of attempts and their times, as docs/protocol.md says under Reconnecting.
 * Each URL has its own delays. While one URL is silent, the next one is tried at the same time
 * (RFC 8305): `connect` goes to the first that opens a connection.
 */
export class Dialer {
  /** The open connection. */
  _connection: Connection | undefined;
  private readonly _targets: Target[];
  private _current: Target | undefined; // the one that has been sent `connect`
  private _since = 0; // when the connection was accepted
  private _notBefore = 0; // for all targets
  private _byServer = false; // the broker has asked for that
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _preparing: object | undefined;

  constructor(
    urls: string[],
    private readonly _socketClass: () => SocketClass,
    private readonly _times: Times,
    private readonly _host: DialHost,
  ) {
    this._targets = urls
      .map((_url) => ({ _url, _backoff: _host._newBackoff(urls.length), _failures: 0, _notBefore: 0, _began: 0 }))
      .sort(() => Math.random() - 0.5);
  }

  /**
   * Makes the next attempt if it is due. Returns the time until then in ms; 0 if one is being made.
   */
  _next(): number {
    clearTimeout(this._timer);
    if (this._current || this._preparing) return 0;
    const at = now();
    const due = (t: Target) => Math.max(t._notBefore, at);
    const [target] = this._targets
      .filter((t) => !t._attempt)
      .sort((a, b) => due(a) - due(b) || a._failures - b._failures);
    if (!target) return 0;
    const silent = this._targets.filter((t) => t._attempt).map((t) => t._began + stagger);
    const wait = Math.max(due(target), this._notBefore, ...silent) - at;
    if (wait > 0) this._timer = setTimeout(() => this._next(), wait);
    else void this._dial(target);
    return silent[0] || this._preparing ? 0 : wait;
  }

  /** Ends the connection and all attempts. */
  _stop(): void {
    clearTimeout(this._timer);
    this._connection = this._current = this._preparing = undefined;
    this._targets.forEach(close);
  }

  /** The broker has accepted the connection. */
  _accepted(): void {
    this._connection = this._current!._attempt;
    this._current!._failures = 0;
    this._since = now();
  }

  /**
   * Goes on after the end of a connection or an attempt. The broker may ask for a delay. `same`
   * prefers the same URL. Returns the time until the next attempt in ms.
   */
  _again(afterMs: number, same: boolean): number {
    const at = now();
    const lost = this._connection && this._current;
    if (lost) {
      const uptime = at - this._since;
      // A network that fails for some seconds now and then must not be taken for one that has
      // failed all the time. So the time of failing shrinks twice as fast as it grows.
      for (const t of this._targets) if (uptime >= minUptime && t._backoff._forget(3 * uptime)) t._failures = 0;
      this._connection = this._current = undefined;
      close(lost);
      if (same) lost._failures = -1;
      else failed(lost);
      // All clients of a dead broker lose their connections in the same millisecond.
      this._notBefore = at + this._host._newBackoff()._next();
    }
    this._byServer = afterMs > 0;
    if (afterMs) this._reset(at + afterMs);
    return this._next();
  }

  /** The network may be back: forgets all delays, except one that the broker has asked for. */
  _wake(): void {
    if (this._current || (this._byServer && now() < this._notBefore)) return;
    this._reset(0);
    for (const t of this._targets) {
      t._failures = 0;
      t._backoff._forget();
      if (now() - t._began >= stagger) close(t);
    }
    this._next();
  }

  private _reset(notBefore: number): void {
    this._notBefore = notBefore;
    for (const t of this._targets) t._notBefore = 0;
  }

  private async _dial(t: Target): Promise<void> {
    const preparing = (this._preparing = {});
    const wait = await this._host._prepare();
    if (this._preparing !== preparing) return;
    this._preparing = undefined;
    if (wait) this._notBefore = now() + wait;
    else this._open(t);
    this._next();
  }

  private _open(t: Target): void {
    const host = this._host;
    const { connectTimeout } = this._times;
    const most = this._targets.length > 1 ? Math.max(patience, t._backoff._age / 3) : connectTimeout;
    t._began = now();
    host._emit("connecting", t._url);
    const ended = (end: End) => {
      if (!this._connection) {
        if (t === this._current) this._current = undefined;
        t._attempt = undefined;
        failed(t);
      }
      host._ended(end);
    };
    try {
      t._attempt = new Connection(
        this._socketClass(),
        t._url,
        Math.min(most, connectTimeout),
        this._times,
        () => this._opened(t),
        (m, size) => host._receive(m, size, t._url),
        ended,
      );
    } catch (error) {
      ended({ code: "lost", message: String(error), reconnect: true, afterMs: 0 });
    }
  }

  private _opened(t: Target): void {
    this._current = t;
    for (const other of this._targets) {
      if (other === t) continue;
      if (other._attempt && now() - other._began >= stagger) failed(other);
      close(other);
    }
    t._attempt!._connect(this._host._hello());
  }
}

function failed(t: Target): void {
  t._failures++;
  t._notBefore = now() + t._backoff._next();
}

function close(t: Target): void {
  t._attempt?._close();
  t._attempt = undefined;
}
