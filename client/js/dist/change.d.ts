import type { Json, Sent } from "./wire.js";
/** Options of a message that may be repeated or confirmed. */
export interface PublishOptions {
    /**
     * Makes the message idempotent: with the same key it is stored once. It is then sent again if the
     * connection is lost before the answer. true draws a key for this call.
     */
    key?: string | true;
    /** Answers after a replica of the store has the message. */
    durable?: boolean;
    /** false: this client does not receive the message itself, live or when it resumes. */
    echo?: boolean;
    /** The longest wait for the answer in ms; 0 for no limit. Absent: that of the Switchboard. */
    timeout?: number;
}
/** Options of a change of fields. */
export interface ChangeOptions<Fields extends object = Record<string, Json>, Data = Json> extends PublishOptions {
    /** Conditions by field: an id; 0 or null for an absent field; true for any value. */
    if?: {
        [Name in keyof Fields]?: number | true | null;
    };
    /** The lease in seconds of the fields that are set or touched. */
    ttl?: number;
    /** true: this client owns the fields, and they end after it has left. false: it gives them up. */
    own?: boolean;
    /** A message for all subscribers. */
    data?: Sent<Data>;
}
/** A change of fields: all of them, or none. A field may appear once. */
export interface Change<Fields extends object = Record<string, Json>, Data = Json> extends ChangeOptions<Fields, Data> {
    set?: {
        [Name in keyof Fields]?: Sent<Fields[Name]>;
    };
    del?: (keyof Fields & string)[];
    /** Additions to whole numbers. An absent field counts as 0. */
    add?: {
        [Name in keyof Fields]?: number | {
            by: number;
            min?: number;
            max?: number;
        };
    };
    /** Fields that get a new lease. */
    touch?: (keyof Fields & string)[];
}
/** The result of a publish or a change. */
export interface Published {
    /** The id of the message, and of each field that was set. */
    id: number;
    /** The results of `add`. */
    fields: Record<string, number>;
}
/** randomText returns 20 characters, from a strong source if there is one. */
export declare function randomText(): string;
export declare function canDrawSecrets(): boolean;
/** encode returns the members of a publish with a change. */
export declare function encode(change: Change): Record<string, unknown>;
