import { type Entry } from "./errors.cjs";
import type { Changes, WireField } from "./wire.cjs";
/**
 * Reducer computes the fields of a channel from pages and messages, as docs/protocol.md says:
 * all pages of a series have one id S, the first one empties the map, and messages with an id above
 * S change it. It does not compare `until` with the clock of this device, which may be wrong: a
 * field is there until the broker reports its end.
 */
export declare class Reducer {
    /** The fields at `_id`. A new series replaces the map; it never changes the old one. */
    _fields: Map<string, Entry<unknown>>;
    _id: number;
    /** The last page of the newest series has arrived. */
    _held: boolean;
    private _series;
    private _later;
    /** Applies a page. It ignores a page of another series than the newest. */
    _page(id: number, fields: Record<string, WireField | null>, first?: boolean, more?: boolean): void;
    /** Applies a message. Returns whether it has changed a complete map. */
    _message(id: number, changes: Changes): boolean;
}
/** namesIn returns the names of the fields that changes are about, without those of `cleared`. */
export declare function namesIn(c: Changes): string[];
