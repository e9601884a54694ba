import { Backoff } from "./backoff.cjs";
/** What `load` returns: the data of the application, and where to continue. */
export interface Loaded {
    /**
     * A position of the channel that was read before the data, or together with it: the data has all
     * that was published up to there. 0: the oldest message that the
     * channel keeps. Absent: the position at which `load` was called.
     */
    after?: number | undefined;
}
/** What a Loader needs from its channel. */
export interface LoadHost<Snapshot> {
    /** Reads the application's data. */
    _load: () => Snapshot | Promise<Snapshot>;
    /** The longest wait for it in ms. */
    _timeout: number;
    /** Gives the data to the handlers. */
    _loaded(snapshot: Snapshot): Promise<unknown> | undefined;
    /** Ends the subscription, drops what waits, and subscribes at a position: now if undefined. */
    _rewind(after: number | undefined, delay: number): void;
    _loadFailed(error: unknown): void;
}
/**
 * Loader calls `load` after the subscription has begun, so nothing is published between the two
 * that is in neither. The messages of the subscription wait until the handlers have the data.
 */
export declare class Loader<Snapshot extends Loaded> {
    /** The subscription that begins next has no data yet. */
    _due: boolean;
    /** The messages up to this position are in the data. */
    _loadedTo: number;
    constructor(_host: LoadHost<Snapshot>, _backoff: Backoff);
    /**
     * Loads for messages above `from`. Those up to `oldest` are gone, so a position below is too old.
     * `isCurrent` reports whether the subscription is still the same.
     */
    _run(from: number, oldest: number, isCurrent: () => boolean): Promise<void>;
}
/** checkPosition throws for a value that cannot be a position. undefined is none. */
export declare function checkPosition(after: unknown): void;
