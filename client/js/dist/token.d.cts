/** A token, or a function that returns one. */
export type TokenSource = string | (() => string | Promise<string>);
/** Tokens keeps the current token. It asks the token function again before the token expires. */
export declare class Tokens {
    /** `_timeout` is the longest wait for the token function in ms; 0 for no limit. */
    constructor(_source: TokenSource | undefined, _timeout: number);
    /** The current token. */
    get _current(): string | undefined;
    /** Asks for a token if there is none that can be used. It rejects with the code `token`. */
    _ensure(): Promise<void>;
    /** Asks the token function. */
    _fetch(): Promise<string>;
    _set(value: string): void;
    _accepted(): void;
    /** The time in ms until the token should be renewed; undefined if it cannot be. */
    get _renewIn(): number | undefined;
    /** Discards a token that the broker does not accept. Returns whether there may be another one. */
    _refused(expired: boolean): boolean;
    /** Reports whether the token is for one client only. */
    get _namesClient(): boolean;
}
