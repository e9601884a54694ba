import { Backoff } from "./backoff.js";
import type { Change, ChangeOptions } from "./change.js";
import type { Channel } from "./channel.js";
import type { Entry, SwitchboardError } from "./errors.js";
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
    const [draft, changes] = record(state as unknown as State, newer);
    const result = await change(draft as Draft<Fields>);
    const { set, del, if: conditions } = changes();
    if (!Object.keys(set).length && !del.length) return result;
    try {
      const all = { ...options, set, del, if: conditions, key: true } as Change<Fields>;
      await channel.update(all);
      return result;
    } catch (error) {
      const { code, fields = {} } = error as SwitchboardError;
      // A refusal shows each field whose condition is not met, if this client may read it. A field
      // that meets it is held by another user, and another attempt would not help.
      const read = Object.entries(code === "conflict" ? fields : {}).filter(
        ([name, entry]) => name in conditions && (entry?.id ?? 0) !== conditions[name],
      );
      if (!read.length || attempt === attempts) throw error;
      for (let [name, entry] of read) {
        if (entry?.value === undefined && entry) {
          // A large refusal has shown only the ids.
          const page = await channel.readState({ prefix: name, limit: 1 });
          entry = new Map(Object.entries(page.fields)).get(name) ?? null;
        }
        newer.set(name, entry);
      }
      await new Promise((resolve) => setTimeout(resolve, backoff._next()));
    }
  }
}

/** What a transaction knows of a field. */
interface Field {
  _id?: number | undefined; // of the value that it has read; undefined if it has read none
  _read?: string; // its JSON
  _value: unknown; // undefined for an absent field
  _written?: boolean;
}

/** record returns a draft, and a function that returns what was read and written. */
function record(state: State, newer: Map<string, Entry | null>) {
  const fields = new Map<string, Field>();
  const get = (name: string | symbol): unknown => {
    if (typeof name === "symbol") return undefined;
    let field = fields.get(name);
    if (!field) {
      const shown = state.entry(name);
      const late = newer.get(name);
      const entry = late === undefined || (late && shown && shown.id > late.id) ? shown : late;
      const json = entry ? JSON.stringify(entry.value) : "";
      field = { _id: entry?.id ?? 0, _read: json, _value: json ? JSON.parse(json) : undefined }; // it may be modified
      fields.set(name, field);
    }
    return field._value;
  };
  const set = (name: string | symbol, _value: unknown) =>
    !!fields.set(String(name), { _id: fields.get(String(name))?._id, _value, _written: true });
  const draft = new Proxy(Object.create(null) as object, {
    get: (_, name) => get(name),
    has: (_, name) => get(name) !== undefined,
    set: (_, name, value) => set(name, value),
    deleteProperty: (_, name) => set(name, undefined),
    ownKeys: () =>
      [...new Set([...state.keys(), ...newer.keys(), ...fields.keys()])].filter((name) => get(name) !== undefined),
    getOwnPropertyDescriptor: (_, name) => {
      const value = get(name);
      return value === undefined ? undefined : { value, writable: true, enumerable: true, configurable: true };
    },
  });
  const changes = () => {
    // Fields may have names such as "__proto__".
    const found = { set: Object.create(null), del: [] as string[], if: Object.create(null) } as {
      set: Record<string, unknown>;
      del: string[];
      if: Record<string, number>;
    };
    for (const [name, { _id, _read, _value, _written }] of fields) {
      if (_id !== undefined) found.if[name] = _id;
      if (_written && _value === undefined) found.del.push(name);
      else if (_written || (_read && jsonOf(_value, name) !== _read)) found.set[name] = _value;
    }
    return found;
  };
  return [draft, changes] as const;
}
