import { Emitter } from "./emitter.js";
import type { SwitchboardError } from "./errors.js";
import type { Channel } from "./channel.js";
import type { Incoming, Json, Member } from "./wire.js";

export interface MemberEvents {
  join: [member: Member];
  leave: [member: Member];
  /** A member shows another value; undefined for none. */
  here: [value: Json | undefined, member: Member];
  /** Anything of the above, or new counts. */
  change: [];
}

/**
 * Up to this number of clients, all members are read. In larger channels only the counts are exact.
 */
const readAll = 1000;

/**
 * The delay in ms after which members that may be wrong are read again. All clients see that at the
 * same time.
 */
const readAgainAfter = () => 5000 + 10_000 * Math.random();

/**
 * Members is a live map of the clients in a channel, by client id, or by alias in a channel that
 * shows aliases.
 */
export class Members extends Emitter<MemberEvents> {
  /** The number of clients. */
  count = 0;
  /** All clients are in the map. In a channel of more than 200 clients they may not be. */
  complete = false;
  private _map = new Map<string, Member>();
  private _reading: Incoming[] | undefined; // events since the reading of pages began
  private _timer: ReturnType<typeof setTimeout> | undefined;

  /** @internal */
  constructor(private readonly _channel: Channel) {
    super(_channel._failed);
  }

  get(client: string): Member | undefined {
    return this._map.get(client);
  }

  has(client: string): boolean {
    return this._map.has(client);
  }

  /** The number of clients in the map. */
  get size(): number {
    return this._map.size;
  }

  /** Iterates over the members. */
  [Symbol.iterator](): IterableIterator<Member> {
    return this._map.values();
  }

  /**
   * @internal Reads all pages, and then applies the events that arrived meanwhile. The broker may
   * answer before it has stored that this client is a member, and sends a client no event about
   * itself: then it reads again after `delay` ms. In a channel that shows aliases, the broker does
   * send the join of this client's alias.
   */
  async _read(delay = 50): Promise<void> {
    this._stop();
    const events: Incoming[] = (this._reading = []);
    const map = new Map<string, Member>();
    let complete = true;
    let count = 0;
    let ids = false; // the channel shows client ids, and no aliases
    try {
      for (let cursor: string | undefined; ;) {
        const page = await this._channel.presence({ cursor });
        for (const m of page.clients) map.set(m.client, m);
        count = page.count;
        ids = page.alias === undefined;
        cursor = page.next;
        if (!cursor) break;
        if (count > readAll) {
          complete = false;
          break;
        }
      }
    } catch (error) {
      if (this._reading !== events) return; // a newer subscription reads
      if ((error as SwitchboardError).retryable) {
        this._timer = setTimeout(() => void this._read(), 1000 + 4000 * Math.random());
        return;
      }
      this._reading = undefined;
      this._channel._failed(error, "members");
      return;
    }
    if (this._reading !== events) return;
    this._reading = undefined;
    this._replace(map, count, complete);
    for (const event of events) this._apply(event);
    const { _sb } = this._channel;
    if (!complete || !ids || map.has(_sb.client!) || delay >= 5000) return;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => _sb._isConnected && void this._read(2 * delay), delay); // else it reads when it subscribes
  }

  /** @internal */
  _apply(m: Incoming): void {
    if (this._reading) {
      this._reading.push(m);
      return;
    }
    if (m.type === "here") return this._here(m.client!, m.data as unknown);
    if (m.clients)
      return this._replace(new Map(m.clients.map((c) => [c.client, c])), m.count ?? m.clients.length, true);
    const before = this._map.size;
    if (m.type === "join") this._join({ client: m.client!, user: m.user, info: m.info as unknown } as Member);
    else if (m.type === "leave") this._leave(m.client!);
    else {
      m.left?.forEach((c) => this._leave(c.client)); // first: a client that is now of another user is in both
      m.joined?.forEach((c) => this._join(c));
      this.complete = m.count === this._map.size;
    }
    this.count = m.count ?? (this.complete ? this._map.size : this.count + this._map.size - before);
    if (!this.complete && this.count <= readAll) this._timer ??= setTimeout(() => void this._read(), readAgainAfter());
    this._emit("change");
  }

  /** @internal Reads no more pages. */
  _stop(): void {
    clearTimeout(this._timer);
    this._timer = this._reading = undefined;
  }

  /** @internal Nothing is known any more. */
  _forget(): void {
    this._stop();
    this._replace(new Map(), 0, false);
  }

  private _replace(map: Map<string, Member>, count: number, complete: boolean): void {
    const before = this._map;
    this._map = map;
    this.count = count;
    this.complete = complete;
    for (const [client, m] of before) if (!map.has(client)) this._emit("leave", m);
    for (const [client, m] of map) {
      if (!before.has(client)) this._emit("join", m);
      const shown = before.get(client)?.here;
      if (JSON.stringify(shown) !== JSON.stringify(m.here)) this._emit("here", m.here, m);
    }
    this._emit("change");
  }

  private _join(m: Member): void {
    const known = this._map.has(m.client);
    this._map.set(m.client, { ...this._map.get(m.client), ...m });
    if (!known) this._emit("join", m);
  }

  private _leave(client: string): void {
    const m = this._map.get(client);
    if (!m) return;
    this._map.delete(client);
    this._emit("leave", m);
  }

  private _here(client: string, value: unknown): void {
    const m = this._map.get(client);
    if (!m) return;
    m.here = (value ?? undefined) as Json;
    this._emit("here", m.here, m);
    this._emit("change");
  }
}
