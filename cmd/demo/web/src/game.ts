/**
 * Dots and boxes. A game is a set of fields of its room:
 *
 *     g/turn            the number of the player whose turn it is
 *     g/line/h/ROW/COL  the player who drew a horizontal line, from dot (ROW, COL) to the right
 *     g/line/v/ROW/COL  … or a vertical one, from dot (ROW, COL) downwards
 *     g/box/ROW/COL     the player who closed the box
 */
export type Fields = Record<string, number>;

/** linesOf returns the lines of a board: direction, row and column. */
export function linesOf(size: number): string[] {
  const both = [...grid(size + 1, size)].map(([a, b]) => [`h/${a}/${b}`, `v/${b}/${a}`]);
  return both.flat();
}

/** boxesOf returns the boxes of a board: row and column. */
export const boxesOf = (size: number) => [...grid(size, size)].map(([row, col]) => `${row}/${col}`);

function* grid(rows: number, cols: number): Generator<[row: number, col: number]> {
  for (let row = 0; row < rows; row++) for (let col = 0; col < cols; col++) yield [row, col];
}

/** The lines around a box. */
const around = (row: number, col: number) => [
  `h/${row}/${col}`,
  `h/${row + 1}/${col}`,
  `v/${row}/${col}`,
  `v/${row}/${col + 1}`,
];

/** The boxes on both sides of a line. One of them may be outside the board: it is never closed. */
function beside(line: string): [row: number, col: number][] {
  const [direction, row, col] = [line[0], ...line.slice(2).split("/").map(Number)] as [string, number, number];
  return [[row, col], direction === "h" ? [row - 1, col] : [row, col - 1]];
}

/** current returns the player whose turn it is. If that one has left, it is the next one's. */
export function current(turn: number | undefined, players: number[]): number | undefined {
  return players.find((n) => n >= (turn ?? 0)) ?? players[0];
}

/**
 * draw makes a move. It runs in a transaction: the broker stores what it writes only if nothing that it has read has
 * changed, and runs it again if something has. So of two moves at the same time, the second one finds another turn.
 */
export function draw(fields: Partial<Fields>, line: string, player: number, players: number[]): void {
  if (players.length < 2) throw new Error("The game begins when a second player is here.");
  if (current(fields["g/turn"], players) !== player) throw new Error("It is not your turn.");
  if (fields[`g/line/${line}`] !== undefined) throw new Error("This line is drawn already.");
  fields[`g/line/${line}`] = player;
  const closed = beside(line).filter(([row, col]) =>
    around(row, col).every((side) => fields[`g/line/${side}`] !== undefined),
  );
  for (const [row, col] of closed) fields[`g/box/${row}/${col}`] = player;
  fields["g/turn"] = closed.length ? player : (players.find((n) => n > player) ?? players[0]!);
}
