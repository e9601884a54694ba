import { Backoff } from "./backoff.js";
import { randomText, type ChangeOptions } from "./change.js";
import type { Channel } from "./channel.js";
import { SwitchboardError, type Entry } from "./errors.js";
import { jsonOf } from "./json.js";
import type { State } from "./state.js";
import type { Json } from "./wire.js";

/** How often a transaction is tried. */
const attempts = 50;

export type TransactOptions = Omit<ChangeOptions, "if" | "key">;

/** A transaction reads and writes fields as properties. `delete` removes a field. */
export type Draft<Fields> = { -readonly [K in keyof Fields]?: Fields[K] };

/**
 * transact calls `change` with a draft of the fields, and publishes what it has written under the
 * condition that no field that it has read has changed. After a conflict it calls `change` again
 * with the current values.
 */
export async function transact<Fields extends object, Result>(
  channel: Channel<Json, Fields>,
  change: (fields: Draft<Fields>) => Result | Promise<Result>,
  options: TransactOptions,
): Promise<Result> {
  const { state } = channel; // adds the state to the subscription
  if (!channel._wanted) await channel.subscribe();
  await state.ready();
  const backoff = new Backoff(1, 250);
  // The fields of refusals, which may be newer than the copy of this client.
  const newer = new Map<string, Entry | null>();
  for (let attempt = 1; ; attempt++) {
    const draft = new Recorder(state as unknown as State, newer);
    const result = await change(draft._proxy as Draft<Fields>);
    const { set, del, conditions } = draft._changes();
    if (!Object.keys(set).length && !del.length) return result;
    try {
      await channel.update({ ...options, set, del, if: conditions, key: randomText() });
      return result;
    } catch (error) {
      const fields = error instanceof SwitchboardError && error.code === "conflict" ? error.fields : undefined;
      // A refusal shows each field whose condition is not met, if this client may read it. A field
      // that meets it is held by another user, and another attempt would not help.
      const read = Object.keys(fields ?? {}).filter(
        (name) => name in conditions && (fields![name]?.id ?? 0) !== conditions[name],
      );
      if (!read.length || attempt === attempts) throw error;
      for (const name of read) newer.set(name, fields![name]!);
      if (read.some((name) => fields![name] && fields![name].value === undefined))
        await refresh(channel as unknown as Channel, read, newer);
      await new Promise((resolve) => setTimeout(resolve, backoff._next()));
    }
  }
}

/** refresh reads fields of which a large refusal has shown only the ids. */
async function refresh(channel: Channel, names: string[], newer: Map<string, Entry | null>): Promise<void> {
  for (const name of names) {
    const page = await channel.readState({ prefix: name, limit: 1 });
    newer.set(name, new Map(Object.entries(page.fields)).get(name) ?? null);
  }
}

/** Recorder notes which fields are read and written. */
class Recorder {
  readonly _proxy: object;
  private readonly _read = new Map<string, Entry | undefined>();
  private readonly _copies = new Map<string, Json>(); // of objects that were read: they may be modified
  private readonly _written = new Map<string, Json>(); // undefined: removed

  constructor(
    private readonly _state: State,
    private readonly _newer: Map<string, Entry | null>,
  ) {
    this._proxy = new Proxy(Object.create(null) as object, {
      get: (_, name) => this._get(name),
      has: (_, name) => this._get(name) !== undefined,
      set: (_, name, value) => this._set(name, value),
      deleteProperty: (_, name) => this._set(name, undefined),
      ownKeys: () => this._names(),
      getOwnPropertyDescriptor: (_, name) => {
        const value = this._get(name) as unknown;
        return value === undefined ? undefined : { value, writable: true, enumerable: true, configurable: true };
      },
    });
  }

  private _current(name: string): Entry | undefined {
    const shown = this._state.entry(name);
    const newer = this._newer.get(name);
    return newer === undefined || (newer && shown && shown.id > newer.id) ? shown : (newer ?? undefined);
  }

  private _get(name: string | symbol): Json {
    if (typeof name === "symbol") return undefined;
    if (this._written.has(name)) return this._written.get(name);
    if (!this._read.has(name)) {
      const entry = this._current(name);
      this._read.set(name, entry);
      if (entry) this._copies.set(name, JSON.parse(JSON.stringify(entry.value)));
    }
    return this._copies.get(name);
  }

  private _set(name: string | symbol, value: Json): boolean {
    this._written.set(String(name), value);
    return true;
  }

  private _names(): string[] {
    const names = new Set([...this._state.keys(), ...this._newer.keys(), ...this._written.keys()]);
    return [...names].filter((name) => this._get(name) !== undefined);
  }

  _changes(): { set: Record<string, Json>; del: string[]; conditions: Record<string, number> } {
    const set = Object.create(null) as Record<string, Json>; // fields may have names such as "__proto__"
    const del: string[] = [];
    const conditions = Object.create(null) as Record<string, number>;
    for (const [name, entry] of this._read) {
      conditions[name] = entry?.id ?? 0;
      const copy = this._copies.get(name) as unknown;
      if (entry && !this._written.has(name) && jsonOf(copy, name) !== JSON.stringify(entry.value)) set[name] = copy;
    }
    for (const [name, value] of this._written) {
      if (value === undefined) del.push(name);
      else set[name] = value;
    }
    return { set, del, conditions };
  }
}
