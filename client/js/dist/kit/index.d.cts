/** The kit: rooms, holds, boards, accounts and scenes. Each one is a module of its own. */
export { Accounts, Session } from "./accounts.cjs";
export type { Account, AccountsOptions, Credentials, LoginAnswer } from "./accounts.cjs";
export { Boards, BoardTop } from "./boards.cjs";
export type { BoardCard, BoardEntry, BoardResult, BoardPage, BoardView, SeasonOption, Standing } from "./boards.cjs";
export { Holds, SeatMap } from "./holds.cjs";
export type { Hold, HoldRequest, Resource } from "./holds.cjs";
export { Lobby, Room, Rooms } from "./rooms.cjs";
export type { MyRoom, NewRoom, Player, RoomCard, RoomDocument, RoomInfo, RoomPatch, RoomQuery } from "./rooms.cjs";
export { Scene, Scenes } from "./scenes.cjs";
export type { Avatar, Placed, SceneInfo } from "./scenes.cjs";
export { View } from "./view.cjs";
export type { ApiOptions } from "../api.cjs";
