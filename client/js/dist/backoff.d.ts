/**
 * Backoff draws delays uniformly between `min` and the time for which something has failed, up to
 * `max` ("full jitter", with a floor). The first delays are drawn up to `first`: all clients of a
 * dead instance fail in the same millisecond, and the first delay already spreads them.
 */
export declare class Backoff {
    constructor(_min: number, _max: number, _first?: number);
    /** For how long it has failed, in ms. */
    get _age(): number;
    /** The delay in ms after another failure. */
    _next(): number;
    /** Forgets `ms` of the time for which it has failed. Returns whether nothing is left. */
    _forget(ms?: number): boolean;
}
