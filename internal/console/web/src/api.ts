// The HTTP API of the broker that serves this page. docs/protocol.md describes the calls.

const storageName = "switchboard-key";

/** Refusal is an answer that is an error, or the failure to get an answer (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly detail?: unknown,
  ) {
    super(message);
  }
}

let key = sessionStorage.getItem(storageName) ?? "";
let onRefusedKey = () => {};

/**
 * setKey makes all further calls with an API key; "" means without one. The key stays in this tab.
 */
export function setKey(value: string) {
  key = value;
  if (value) sessionStorage.setItem(storageName, value);
  else sessionStorage.removeItem(storageName);
}

export const hasKey = () => key !== "";

/** whenKeyIsRefused sets what happens when the broker refuses a key that it accepted before. */
export function whenKeyIsRefused(handler: () => void) {
  onRefusedKey = handler;
}

/**
 * JSONText is a body whose members are JSON texts. They are sent as they are, so no number is
 * rounded. Empty ones are left out.
 */
export class JSONText {
  constructor(readonly members: Record<string, string>) {}

  toString() {
    const members = Object.entries(this.members).filter(([, text]) => text);
    return `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
  }
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  body?: unknown;
  /** Milliseconds until the call is abandoned. The default is 15,000. */
  timeout?: number;
  /** True keeps numbers that JavaScript cannot represent as they were sent; see parseExactly. */
  exact?: boolean;
}

/** call calls the API. It throws a Refusal, or the signal's AbortError. */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const headers: Record<string, string> = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  const timeout = AbortSignal.timeout(options.timeout ?? 15_000);
  const init: RequestInit = {
    method,
    headers,
    signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  };
  if (options.body !== undefined)
    init.body = options.body instanceof JSONText ? String(options.body) : JSON.stringify(options.body);
  let status = 0;
  let text: string;
  try {
    const response = await fetch(path, init);
    status = response.status;
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refusal(
      0,
      "unreachable",
      timeout.aborted ? "The broker does not answer." : "The broker cannot be reached.",
    );
  }
  let answer: unknown;
  try {
    answer = options.exact ? parseExactly(text) : JSON.parse(text);
  } catch {
    throw new Refusal(status, "malformed", `The answer is not JSON (status ${status}).`);
  }
  if (status >= 200 && status < 300) return answer as T;
  const error = (answer as { error?: { code?: string; message?: string } }).error ?? {};
  const refusal = new Refusal(
    status,
    error.code ?? String(status),
    error.message ?? `The broker answered with status ${status}.`,
    error,
  );
  if (status === 401 && key) onRefusedKey();
  throw refusal;
}

export const get = <T>(path: string, options?: CallOptions) => call<T>("GET", path, options);
export const post = <T>(path: string, body: unknown = {}, options?: CallOptions) =>
  call<T>("POST", path, { ...options, body });

export const del = <T>(path: string) => call<T>("DELETE", path);

/** path joins the segments of a path and escapes each of them. */
export const path = (...segments: string[]) => "/v1/" + segments.map(encodeURIComponent).join("/");

/** query returns a query string of the values that are neither undefined nor "". */
export function query(values: Record<string, string | number | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text && "?" + text;
}

/** clientPath returns the path of a client; the last slash of its id separates the user. */
export const clientPath = (client: string, ...rest: string[]) => path("clients", client, ...rest);

type ExactJSON = typeof JSON & { rawJSON?: (text: string) => unknown };

/**
 * parseExactly is JSON.parse, but a number that would change, such as 12345678901234567890, becomes
 * a raw value, which JSON.stringify writes as it was sent. Browsers without raw values round it.
 */
export function parseExactly(text: string): unknown {
  const { rawJSON } = JSON as ExactJSON;
  if (!rawJSON) return JSON.parse(text);
  return JSON.parse(text, function (_name: string, value: unknown, context?: { source?: string }) {
    if (typeof value === "number" && context?.source !== undefined && String(value) !== context.source)
      return rawJSON(context.source);
    return value;
  } as (name: string, value: unknown) => unknown);
}
