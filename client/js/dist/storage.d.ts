/** Where positions and the identity of the client are kept: localStorage, or anything like it. */
export type Storage = {
    getItem(key: string): Awaitable<string | null | undefined>;
    setItem(key: string, value: string): unknown;
} | {
    get(key: string): Awaitable<string | null | undefined>;
    set(key: string, value: string): unknown;
};
type Awaitable<T> = T | Promise<T>;
/** What is stored, as JSON under one key. */
export interface Saved {
    /** The client id, with the user: the ids of the inbox belong to it. */
    client?: string | undefined;
    /** The option `client`, the name that the device has, and the secret of one without a user. */
    asked?: string | undefined;
    name?: string | undefined;
    secret?: string | undefined;
    /** The last id handled of the client queue, and of `$all`. */
    inbox?: number | undefined;
    all?: number | undefined;
    /** The last id handled, by channel. */
    channels?: Record<string, number>;
    /** When each of these channels was last in use, in ms since 1970. */
    used?: Record<string, number>;
}
/**
 * Store writes positions, several at a time. Its failures are reported and have no other effect. A
 * storage that cannot be read is not written.
 */
export declare class Store {
    constructor(_storage: Storage | undefined, _key: string, _snapshot: () => Saved, _failed: (error: unknown) => void);
    _load(): Promise<Saved>;
    /** Notes that there is something to write. */
    _changed(): void;
    /** Writes at once what waits. */
    _flush(): Promise<void>;
}
export {};
