// Numbers, times and payloads as text.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** count formats a whole number, as 10,000. */
export const count = (n: number) => whole.format(n);

/** compact formats a number for an axis, as 10K. */
export const compact = (n: number) => short.format(n);

/** rate formats a number per second; below 10 with one decimal. */
export const rate = (n: number) => (n > 0 && n < 10 ? n.toFixed(1) : whole.format(n));

/** bytes formats a size, as 31 MB. */
export function bytes(n: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1000;
    unit++;
  }
  return `${n < 10 && unit > 0 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

/** latency formats seconds, as 0.42 ms. */
export function latency(seconds: number): string {
  if (seconds <= 0) return "–";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return `${seconds.toFixed(1)} s`;
}

/** duration formats milliseconds in one or two units, as 3 h 12 min. */
export function duration(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** countdown formats milliseconds as m:ss. */
export function countdown(ms: number): string {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return s >= 3600 ? duration(ms) : `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

/** time formats a moment: the time of day, or the date if it is not today. */
export function time(ms: number): string {
  const at = new Date(ms);
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : day.format(at);
}

/** moment formats a moment in full, for a tooltip. */
export const moment = (ms: number) => new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC");

/** idTime returns when a message was stored: its id counts 4096ths of a ms since 2020. */
export const idTime = (id: number) => Date.UTC(2020, 0, 1) + Math.floor(id / 4096);

/** timeID returns the lowest id of a message that was stored at a time, or 0. */
export const timeID = (ms: number) => Math.max(0, (ms - Date.UTC(2020, 0, 1)) * 4096);

/** json writes a value on one line, or indented. */
export const json = (value: unknown, indent = 0) => JSON.stringify(value, null, indent) ?? "";

/** plural returns "1 message" or "2 messages". */
export const plural = (n: number, one: string, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;
