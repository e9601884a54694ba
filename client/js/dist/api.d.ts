import { SwitchboardError } from "./errors.js";
export interface ApiOptions {
    /** The API key, or nothing for an open broker. */
    key?: string;
    /** Absent: the global fetch. */
    fetch?: typeof fetch;
    /** The longest time of one attempt in ms. Absent: 10,000. The broker itself waits up to 3 s. */
    timeout?: number;
}
export interface Call {
    query?: Record<string, string | number | boolean | undefined> | undefined;
    body?: unknown;
    headers?: Record<string, string> | undefined;
    /** Replaces the key of the options. */
    key?: string | undefined;
    /** The time in ms that the broker may wait, in addition to `timeout`. */
    wait?: number;
}
/** Api calls the HTTP API of one or several brokers. A refusal is a SwitchboardError. */
export declare class Api {
    constructor(urls: string | string[], options?: ApiOptions);
    post<Answer>(path: string, body: unknown): Promise<Answer>;
    /**
     * Makes a call. If an instance cannot be reached, the next call goes to the next one. The code of
     * the error is then `lost`: a call that changes something may have been executed.
     */
    call<Answer>(method: string, path: string, { query, body, headers, key, wait }?: Call): Promise<Answer>;
}
/** A refusal of the HTTP API. */
export declare class ApiError extends SwitchboardError {
    /** The status of the answer. */
    status: number;
    /** The time in seconds after which to try again; 0 if there is none. */
    retryAfter: number;
    /** Of a durable push that is stored but not confirmed: the results. */
    results: unknown;
}
/** A condition on the version of a document: a version, or "*" for any. */
export type Condition = {
    ifMatch?: number | "*";
    ifNoneMatch?: "*";
};
/** The headers of a condition. */
export declare function headersOf(condition?: Condition): Record<string, string>;
