import type { Switchboard } from "../index.js";
import { View } from "./view.js";
export interface BoardEntry {
    rank: number;
    player: string;
    score: number;
}
export interface BoardView {
    board: string;
    season?: string;
    /** The end of the season, in ms since 1970. */
    ends?: number;
    /** The number of players. */
    count: number;
    entries: BoardEntry[];
}
/** The entries of a board by rank. */
export interface BoardPage extends BoardView {
    /** The cursor of the next page. The last page has none. */
    cursor?: string;
}
/** A board in the list of boards. */
export interface BoardCard {
    board: string;
    order: "asc" | "desc";
    mode: "best" | "set" | "add";
    season?: string;
    /** The end of the season, in ms since 1970. */
    ends?: number;
    /** The number of players in the season. */
    count: number;
    first?: BoardEntry;
}
export interface Standing extends BoardEntry {
    board: string;
    season?: string;
    count: number;
}
/** The result of a submission. A score of null means that the player has none. */
export interface BoardResult {
    board: string;
    season?: string;
    player: string;
    score: number | null;
    previous: number | null;
    rank?: number;
    count: number;
    repeated?: boolean;
}
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
export declare class Boards {
    constructor(sb: Switchboard);
    /** Submits a score of the user. A repeat with the same `key` changes nothing. */
    submit(board: string, score: number, options?: SubmissionKey & SeasonOption): Promise<BoardResult>;
    /** The first entries, 10 if `limit` is absent. */
    top(board: string, options?: {
        offset?: number;
        cursor?: string;
        limit?: number;
    } & SeasonOption): Promise<BoardPage>;
    /** A player, of this user if it is absent, with `limit` (5) neighbors on each side. */
    around(board: string, options?: {
        player?: string;
        limit?: number;
    } & SeasonOption): Promise<BoardView>;
    /** The place of a player, of this user if it is absent. */
    rank(board: string, options?: {
        player?: string;
    } & SeasonOption): Promise<Standing>;
    /** Follows the first ten. */
    follow(board: string): BoardTop;
}
/** The first ten of a board, kept up to date. */
export declare class BoardTop extends View {
    get season(): string | undefined;
    /** In the order of ranks. */
    get entries(): BoardEntry[];
}
