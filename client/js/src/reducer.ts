import { entryOf, type Entry } from "./errors.js";
import type { Changes, WireField } from "./wire.js";

/**
 * Reducer computes the fields of a channel from pages and messages, as docs/protocol.md says:
 * all pages of a series have one id S, the first one empties the map, and messages with an id above
 * S change it. It does not compare `until` with the clock of this device, which may be wrong: a
 * field is there until the broker reports its end.
 */
export class Reducer {
  /** The fields at `_id`. A new series replaces the map; it never changes the old one. */
  _fields = new Map<string, Entry>();
  _id = 0;
  /** The last page of the newest series has arrived. */
  _held = false;
  private _series = 0; // the id of the series whose last page is missing
  private _later: [id: number, changes: Changes][] = []; // messages after the first page of a series

  /** Applies a page. It ignores a page of another series than the newest. */
  _page(id: number, fields: Record<string, WireField | null>, first = false, more = false): void {
    if (first) {
      this._fields = new Map();
      this._id = this._series = id;
      this._held = false;
      this._later = [];
    } else if (!this._series || id !== this._series) {
      return;
    }
    for (const [name, field] of Object.entries(fields)) if (field) this._fields.set(name, entryOf(field));
    if (more) return;
    this._series = 0;
    this._held = true;
    for (const [later, changes] of this._later.splice(0)) this._message(later, changes);
  }

  /** Applies a message. Returns whether it has changed a complete map. */
  _message(id: number, changes: Changes): boolean {
    if (this._series) {
      this._later.push([id, changes]);
      return false;
    }
    if (id <= this._id) return false;
    this._id = id;
    apply(this._fields, id, changes);
    return this._held;
  }
}

function apply(fields: Map<string, Entry>, id: number, c: Changes): void {
  const edit = (name: string, change: Partial<Entry>) => {
    const entry = fields.get(name);
    if (entry) fields.set(name, { ...entry, ...change });
  };
  const ends = new Map(Object.entries(c.until ?? {})); // fields may have names such as "constructor"
  if (c.cleared) fields.clear();
  for (const name in c.gone) fields.delete(name);
  for (const name of c.del ?? []) fields.delete(name);
  for (const name in c.set) {
    fields.set(name, { id, value: c.set[name] as unknown, until: undefined, away: fields.get(name)?.away ?? false });
  }
  for (const [name, until] of ends) edit(name, { until: until || undefined });
  for (const name in c.away) edit(name, { away: true, until: c.away[name] || undefined });
  for (const name of c.back ?? []) edit(name, { away: false, until: ends.get(name) || undefined });
}

/** namesIn returns the names of the fields that changes are about, without those of `cleared`. */
export function namesIn(c: Changes): string[] {
  return [
    ...new Set(
      [c.gone, c.set, c.until, c.away].flatMap((part) => Object.keys(part ?? {})).concat(c.del ?? [], c.back ?? []),
    ),
  ];
}
