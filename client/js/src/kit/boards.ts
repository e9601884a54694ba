import type { Switchboard } from "../index.js";
import type { BoardEntry, BoardPage, BoardResult, BoardView, Standing } from "./types.gen.js";
import { View } from "./view.js";

/** Absent: the current season; "previous", or an id. */
export interface SeasonOption {
  season?: string;
}

/** What identifies a submission. */
export interface SubmissionKey {
  key?: string;
  /** @deprecated The former name of `key`. */
  operation?: string;
}

/** Boards: see docs/boards.md. */
export class Boards {
  constructor(private readonly sb: Switchboard) {}

  /** Submits a score of the user. A repeat with the same `key` changes nothing. */
  submit(board: string, score: number, options: SubmissionKey & SeasonOption = {}): Promise<BoardResult> {
    return this.sb.call("board.submit", { board, score, ...options });
  }

  /** The first entries, 10 if `limit` is absent. */
  top(
    board: string,
    options: { offset?: number; cursor?: string; limit?: number } & SeasonOption = {},
  ): Promise<BoardPage> {
    return this.sb.call("board.top", { board, ...options });
  }

  /** A player, of this user if it is absent, with `limit` (5) neighbors on each side. */
  around(board: string, options: { player?: string; limit?: number } & SeasonOption = {}): Promise<BoardView> {
    return this.sb.call("board.around", { board, ...options });
  }

  /** The place of a player, of this user if it is absent. */
  rank(board: string, options: { player?: string } & SeasonOption = {}): Promise<Standing> {
    return this.sb.call("board.rank", { board, ...options });
  }

  /** Follows the first ten. */
  follow(board: string): BoardTop {
    return new BoardTop(this.sb, `board:${board}`);
  }
}

/** The first ten of a board, kept up to date. */
export class BoardTop extends View {
  get season(): string | undefined {
    return this.top?.season;
  }

  /** In the order of ranks. */
  get entries(): BoardEntry[] {
    return (this.top?.entries ?? []).map((entry, i) => ({ ...entry, rank: i + 1 }));
  }

  private get top(): { season?: string; entries: Omit<BoardEntry, "rank">[] } | undefined {
    return this.channel.state.get("top") as { season?: string; entries: BoardEntry[] } | undefined;
  }
}
