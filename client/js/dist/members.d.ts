import { Emitter } from "./emitter.js";
import type { Json, Member } from "./wire.js";
export interface MemberEvents {
    join: [member: Member];
    leave: [member: Member];
    /** A member shows another value; undefined for none. */
    here: [value: Json | undefined, member: Member];
    /** Anything of the above, or new counts. */
    change: [];
}
/**
 * Members is a live map of the clients in a channel, by client id, or by alias in a channel that
 * shows aliases.
 */
export declare class Members extends Emitter<MemberEvents> {
    /** The number of clients. */
    count: number;
    /** All clients are in the map. In a channel of more than 200 clients they may not be. */
    complete: boolean;
    get(client: string): Member | undefined;
    has(client: string): boolean;
    /** The number of clients in the map. */
    get size(): number;
    /** Iterates over the members. */
    [Symbol.iterator](): IterableIterator<Member>;
}
