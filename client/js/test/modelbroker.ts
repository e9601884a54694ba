import type { Socket } from "../src/connection.js";
import type { Changes, Incoming, Json, Outgoing, WireField } from "../src/wire.js";

/** A generator of random numbers with a seed (mulberry32). */
export function random(seed: number): (n: number) => number {
  return (n) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((((t ^ (t >>> 14)) >>> 0) * n) / 2 ** 32) | 0;
  };
}

type Logged = { id: number; data?: Json } & Changes;

/**
 * A broker with one channel that has a state, and one client with a queue. It has no transport
 * faults of its own: the test drops connections, and messages that are on their way are then lost.
 */
export class ModelBroker {
  log: Logged[] = []; // of the channel, from `trimmed` on
  trimmed = 0; // ids up to it are gone
  fields = new Map<string, WireField>();
  queue: Logged[] = []; // of the client
  id = 1000; // the last id
  lost = new Set<number>(); // ids that a failover has lost
  private _socket: ModelSocket | undefined;
  private _outgoing: Incoming[] = []; // written, and not yet received
  private _subscribed = false;
  private _changes: Logged[] = []; // all that were not lost

  constructor(private readonly _random: (n: number) => number) {}

  /** Stores a message, or a change, or both. */
  publish(): number {
    const id = ++this.id;
    const kind = this._random(3);
    const m: Logged = { id };
    if (kind !== 0) m.data = id;
    if (kind !== 1) {
      const name = `f${this._random(5)}`;
      if (this.fields.has(name) && this._random(3) === 0) m.del = [name];
      else m.set = { [name]: id };
    }
    this.log.push(m);
    this._changes.push(m);
    this._apply(m);
    if (this._subscribed) this._write({ type: "message", channel: "c", ...m } as Incoming);
    return id;
  }

  private _apply(m: Logged): void {
    for (const name of m.del ?? []) this.fields.delete(name);
    for (const name in m.set) this.fields.set(name, [m.id, m.set[name]]);
  }

  push(): number {
    const m = { id: ++this.id, data: this.id };
    this.queue.push(m);
    this._write({ type: "message", ...m });
    return m.id;
  }

  /** Forgets the oldest messages. A subscriber that has not received them sees a gap. */
  trim(): void {
    const n = this._random(this.log.length + 1);
    for (const m of this.log.splice(0, n)) this.trimmed = m.id;
  }

  /** A failover of the store: it loses the newest messages of the channel. Ids never come back. */
  failover(): void {
    this.drop();
    const kept = this.log.length - this._random(Math.min(4, this.log.length) + 1);
    for (const m of this.log.splice(kept)) this.lost.add(m.id);
    this._changes = this._changes.filter((m) => !this.lost.has(m.id));
    this.fields.clear();
    for (const m of this._changes) this._apply(m);
    this.id++;
  }

  /** Ends the connection. */
  drop(): void {
    this._subscribed = false;
    this._outgoing = [];
    const socket = this._socket;
    this._socket = undefined;
    socket?.onclose?.({ code: 1006 });
  }

  /** Delivers up to n messages, some of them twice. */
  deliver(n: number): void {
    while (n-- > 0 && this._outgoing.length && this._socket) {
      const text = JSON.stringify(this._outgoing[0]);
      const repeated = this._outgoing[0]!.type === "message" && this._random(10) === 0;
      this._outgoing.shift();
      for (let i = repeated ? 2 : 1; i > 0; i--) this._socket?.onmessage?.({ data: text });
    }
  }

  get idle(): boolean {
    return !this._outgoing.length && this._subscribed;
  }

  open(socket: ModelSocket): void {
    this._socket = socket;
    socket.onopen?.();
  }

  receive(socket: ModelSocket, m: Outgoing): void {
    if (socket !== this._socket) return;
    switch (m.type) {
      case "connect":
        this._write({ type: "connected", ref: m.ref!, client: "c-1", server: "b", id: this.id });
        for (const q of this.queue) this._write({ type: "message", id: q.id, data: q.data });
        return;
      case "ack":
        this.queue = this.queue.filter((q) => q.id > m["id"]);
        return;
      case "subscribe":
        return this._subscribe(m);
      default:
        throw new Error(`unexpected ${m.type}`);
    }
  }

  private _subscribe(m: Outgoing): void {
    const answer = { type: "subscribed", ref: m.ref!, channel: "c" };
    const after = m["after"] as number | undefined;
    const newest = this.log.at(-1)?.id ?? this.trimmed;
    this._subscribed = true;
    if (after === undefined) {
      this._write({ ...answer, id: newest });
      return this._pages(newest);
    }
    const known = after >= this.trimmed && !this.lost.has(after);
    if (known) {
      this._write({ ...answer, id: after, recovered: true });
      if (!m["held"]) this._pages(newest);
    } else if (after < this.trimmed) {
      this._write({ ...answer, id: after, recovered: false });
      this._write({ type: "gap", channel: "c", after, id: this.trimmed });
      this._pages(newest);
    } else {
      const start = this.log.filter((l) => l.id < after).at(-1)?.id ?? this.trimmed;
      this._write({ ...answer, id: start, recovered: false });
      this._pages(newest);
      return this._replay(start);
    }
    this._replay(after);
  }

  private _replay(after: number): void {
    for (const l of this.log) if (l.id > after) this._write({ type: "message", channel: "c", ...l } as Incoming);
  }

  private _pages(id: number): void {
    const fields = [...this.fields];
    const half = this._random(fields.length + 1);
    const page = { type: "state", channel: "c", id };
    this._write({ ...page, first: true, more: true, fields: Object.fromEntries(fields.slice(0, half)) });
    this._write({ ...page, fields: Object.fromEntries(fields.slice(half)) });
  }

  private _write(m: Incoming): void {
    if (this._socket) this._outgoing.push(m);
  }
}

/** Returns a WebSocket class whose server is a ModelBroker. */
export function socketOf(broker: ModelBroker) {
  return class extends ModelSocket {
    protected override _broker = broker;
  };
}

export class ModelSocket implements Socket {
  static last: ModelSocket | undefined; // that is not open yet
  protected _broker!: ModelBroker;
  onopen: (() => unknown) | null = null;
  onmessage: ((event: { data: string }) => unknown) | null = null;
  onerror: (() => unknown) | null = null;
  onclose: ((event: { code: number }) => unknown) | null = null;

  constructor(_url: string) {
    ModelSocket.last = this;
  }

  send(text: string): void {
    this._broker.receive(this, JSON.parse(text) as Outgoing);
  }

  close(): void {}
}
