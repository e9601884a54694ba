/** How long something lasts. */
export interface Ttl {
  ttl_ms?: number;
  /** @deprecated The former name of `ttl_ms`, in seconds. */
  ttl?: number;
}

/** A number is the former form, in seconds. */
export type TtlOption = Ttl | number;

/** membersOf returns the members of a call that say how long something lasts. */
export function membersOf(time: TtlOption = {}): Ttl {
  return typeof time === "number" ? { ttl: time } : time;
}

/** path escapes the names in a path. */
export function path(parts: TemplateStringsArray, ...names: string[]): string {
  return String.raw({ raw: parts }, ...names.map(encodeURIComponent));
}
