import { Emitter } from "./emitter.js";
import type { Entry } from "./errors.js";
import { Reducer, namesIn } from "./reducer.js";
import type { Changes, Incoming, Json } from "./wire.js";

/** The argument of the event `change`. */
export interface StateChange extends Changes {
  /** The id of the channel to which the state now corresponds. */
  id: number;
  /** The names of the fields that differ from before. */
  names: string[];
  /**
   * All fields have arrived anew, because changes may have been missed. Then there are no parts.
   */
  full: boolean;
  /** The client that published the change, if this client may know. */
  by?: string | undefined;
  data?: Json;
}

export interface StateEvents {
  change: [change: StateChange];
}

/**
 * State is a live copy of the fields of a channel. While it is updated after a reconnect, it shows
 * the last complete copy. In a handler it is the state at the id of the handler's message.
 */
export class State<Fields extends object = Record<string, Json>> extends Emitter<StateEvents> {
  /** The id to which the fields correspond. */
  id = 0;
  /** All fields have arrived at least once. */
  complete = false;
  private _shown: ReadonlyMap<string, Entry> = new Map();
  private _reducer = new Reducer();
  private _waiters: { resolve: () => void; reject: (error: unknown) => void }[] = [];

  /** @internal `_closed` returns the error after which nothing arrives. */
  constructor(
    failed: (error: unknown, event: string) => void,
    private readonly _closed: () => unknown,
  ) {
    super(failed);
  }

  /** The value of a field, undefined if it is absent. Do not modify it. */
  get<K extends keyof Fields & string>(name: K): Fields[K] | undefined {
    return this._shown.get(name)?.value as Fields[K] | undefined;
  }

  /** A field with its id, end and absence of owners. */
  entry<K extends keyof Fields & string>(name: K): Entry<Fields[K]> | undefined {
    return this._shown.get(name) as Entry<Fields[K]> | undefined;
  }

  has(name: string): boolean {
    return this._shown.has(name);
  }

  get size(): number {
    return this._shown.size;
  }

  keys(): IterableIterator<string> {
    return this._shown.keys();
  }

  entries(): IterableIterator<[string, Entry]> {
    return this._shown.entries();
  }

  /** Iterates over names and values: `Object.fromEntries(room.state)` is a plain object. */
  *[Symbol.iterator](): IterableIterator<[keyof Fields & string, Fields[keyof Fields]]> {
    for (const [name, entry] of this._shown) yield [name, entry.value] as never;
  }

  /**
   * Resolves when all fields have arrived, and rejects if the subscription was refused or has
   * ended.
   */
  ready(): Promise<void> {
    if (this.complete) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const closed = this._closed();
      if (closed) reject(closed);
      else this._waiters.push({ resolve, reject });
    });
  }

  /** @internal Something waits in `ready`. */
  get _waited(): boolean {
    return this._waiters.length > 0;
  }

  /** @internal The subscription has ended. */
  _ended(error: unknown): void {
    for (const w of this._waiters.splice(0)) w.reject(error);
  }

  /** @internal Forgets everything. */
  _restart(): void {
    this._reducer = new Reducer();
    this._shown = new Map();
    this.complete = false;
  }

  /** @internal */
  _page(m: Incoming): Promise<unknown> | undefined {
    const before = this._shown;
    const reducer = this._reducer;
    reducer._page(m.id!, m.fields ?? {}, m.first, m.more);
    if (m.more || !reducer._held || reducer._fields === before) return;
    this._shown = reducer._fields;
    this.id = reducer._id;
    this.complete = true;
    for (const w of this._waiters.splice(0)) w.resolve();
    const names = [...new Set([...before.keys(), ...this._shown.keys()])].filter(
      (name) => JSON.stringify(before.get(name)) !== JSON.stringify(this._shown.get(name)),
    );
    return this._emit("change", { id: this.id, names, full: true });
  }

  /** @internal */
  _message(m: Incoming): Promise<unknown> | undefined {
    const names = m.cleared ? [...this._shown.keys()] : [];
    if (!this._reducer._message(m.id!, m)) return;
    this.id = m.id!;
    names.push(...namesIn(m).filter((name) => !names.includes(name)));
    if (!names.length && !m.cleared) return;
    const { type, channel, ...parts } = m;
    return this._emit("change", { ...parts, id: this.id, names, full: false } as StateChange);
  }
}
