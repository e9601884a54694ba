import { urlsOf } from "./config.js";
import { SwitchboardError } from "./errors.js";
import { jsonOf } from "./json.js";
import type { Incoming } from "./wire.js";

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
export class Api {
  private readonly urls: string[];
  private at = 0;

  constructor(
    urls: string | string[],
    private readonly options: ApiOptions = {},
  ) {
    this.urls = urlsOf(urls, "http");
  }

  post<Answer>(path: string, body: unknown): Promise<Answer> {
    return this.call("POST", path, { body });
  }

  /**
   * Makes a call. If an instance cannot be reached, the next call goes to the next one. The code of
   * the error is then `lost`: a call that changes something may have been executed.
   */
  async call<Answer>(
    method: string,
    path: string,
    { query, body, headers, key = this.options.key, wait = 0 }: Call = {},
  ): Promise<Answer> {
    const search = Object.entries(query ?? {}) // React Native has only parts of URLSearchParams
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${encodeURIComponent(value!)}`)
      .join("&");
    const { at } = this;
    const url = `${this.urls[at % this.urls.length]}${path}${search && `?${search}`}`;
    const content = body === undefined ? null : jsonOf(body, path);
    let response: Response;
    let text: string;
    const abort = new AbortController(); // React Native has no AbortSignal.timeout
    const timer = setTimeout(() => abort.abort(), (this.options.timeout ?? 10_000) + wait);
    try {
      response = await (this.options.fetch ?? fetch)(url, {
        method,
        headers: {
          ...(body !== undefined && { "Content-Type": "application/json" }),
          ...(key !== undefined && { Authorization: `Bearer ${key}` }),
          ...headers,
        },
        body: content,
        signal: abort.signal,
      });
      text = await response.text();
    } catch (error) {
      this.next(at);
      const why = abort.signal.aborted ? "no answer in time" : String(error);
      throw new SwitchboardError("lost", `${method} ${path}: ${why}`, {}, error);
    } finally {
      clearTimeout(timer);
    }
    const answer = parse(text) as { error?: Partial<Incoming>; results?: unknown } | undefined;
    if (response.ok && answer !== undefined) return answer as Answer;
    const { code = "lost", message = `status ${response.status}` } = answer?.error ?? {};
    if (response.status >= 500) this.next(at);
    const error = new ApiError(code, message, answer?.error);
    error.status = response.status;
    error.results = answer?.results;
    error.retryAfter = Number(response.headers.get("Retry-After")) || 0;
    throw error;
  }

  /** Leaves an instance that has failed. Of several calls that fail there, only one moves on. */
  private next(failed: number): void {
    if (this.at === failed) this.at++;
  }
}

/** A refusal of the HTTP API. */
export class ApiError extends SwitchboardError {
  /** The status of the answer. */
  status = 0;
  /** The time in seconds after which to try again; 0 if there is none. */
  retryAfter = 0;
  /** Of a durable push that is stored but not confirmed: the results. */
  results: unknown;
}

/** A condition on the version of a document: a version, or "*" for any. */
export type Condition = { ifMatch?: number | "*"; ifNoneMatch?: "*" };

/** The headers of a condition. */
export function headersOf(condition: Condition = {}): Record<string, string> {
  const { ifMatch, ifNoneMatch } = condition;
  return {
    ...(ifMatch !== undefined && { "If-Match": ifMatch === "*" ? "*" : `"${ifMatch}"` }),
    ...(ifNoneMatch && { "If-None-Match": ifNoneMatch }),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text || "null") as unknown;
  } catch {
    return undefined;
  }
}
