/**
 * Backoff draws delays uniformly between `min` and a ceiling that doubles with each failure ("full
 * jitter", with a floor). The ceiling starts at four times `min`: all clients of a dead instance
 * lose their connections in the same millisecond, and the first delay already spreads them.
 */
export declare class Backoff {
    private readonly _min;
    private readonly _max;
    private _failures;
    constructor(_min: number, _max: number);
    _next(): number;
    _reset(): void;
}
