import { Emitter } from "./emitter.cjs";
import type { Entry } from "./errors.cjs";
import type { Changes, Json } from "./wire.cjs";
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
export declare class State<Fields extends object = Record<string, Json>> extends Emitter<StateEvents> {
    /** The id to which the fields correspond. */
    id: number;
    /** All fields have arrived at least once. */
    complete: boolean;
    /** The value of a field, undefined if it is absent. Do not modify it. */
    get<K extends keyof Fields & string>(name: K): Fields[K] | undefined;
    /** A field with its id, end and absence of owners. */
    entry<K extends keyof Fields & string>(name: K): Entry<Fields[K]> | undefined;
    has(name: string): boolean;
    get size(): number;
    keys(): IterableIterator<string>;
    entries(): IterableIterator<[string, Entry]>;
    /** Iterates over names and values: `Object.fromEntries(room.state)` is a plain object. */
    [Symbol.iterator](): IterableIterator<[keyof Fields & string, Fields[keyof Fields]]>;
    /**
     * Resolves when all fields have arrived, and rejects if the subscription was refused or has
     * ended.
     */
    ready(): Promise<void>;
}
