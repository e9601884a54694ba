/**
 * Backoff draws delays uniformly from `min` to an upper bound ("full jitter", with a floor). The
 * bound is `first` at the beginning: all clients of a dead instance fail in the same millisecond,
 * and the first delay already spreads them. Then it is the time for which something has failed, up
 * to five times `first`, and later a third of that time, up to `max`. So outages of seconds in a row
 * do not add up to long delays.
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
