import { SwitchboardError } from "./errors.js";

/**
 * jsonOf returns the JSON of a value of the application. Its error says which value cannot be
 * encoded, and why.
 */
export function jsonOf(value: unknown, what: string): string {
  let cause: unknown;
  try {
    const text = JSON.stringify(value) as string | undefined;
    if (text !== undefined) return text;
  } catch (error) {
    cause = error;
  }
  const why = cause ? String(cause).split("\n")[0] : typeof value;
  throw new SwitchboardError("bad_request", `${what}: the data is not JSON: ${why}`, {}, cause);
}
