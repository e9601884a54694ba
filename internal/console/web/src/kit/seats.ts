// Names of seats: ranges, and rows for the map.

export interface SeatRow {
  label: string;
  seats: string[];
}

/** expand returns the seats of a list of names and ranges, such as A1..A20 or A01..A20. */
export function expand(list: string[]): string[] {
  return list.flatMap((entry) => {
    const range = /^(.*?)(\d+)\.\.(.*?)(\d+)$/.exec(entry);
    if (!range) return [entry];
    const [, prefix = "", first = "", , last = ""] = range;
    const width = first.startsWith("0") ? first.length : 0;
    const length = Number(last) - Number(first) + 1;
    return Array.from(
      { length: Math.max(0, length) },
      (_, i) => prefix + String(Number(first) + i).padStart(width, "0"),
    );
  });
}

/**
 * rowsOf groups seats by the part of the name before its last number. Seats without a number are a
 * row.
 */
export function rowsOf(seats: string[]): SeatRow[] {
  const rows = new Map<string, string[]>();
  for (const seat of seats) {
    const label = /^(.*?)[-_.:]?\d+$/.exec(seat)?.[1] ?? "";
    const row = rows.get(label);
    if (row) row.push(seat);
    else rows.set(label, [seat]);
  }
  return [...rows].map(([label, seats]) => ({ label, seats }));
}
