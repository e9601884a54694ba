import all from "./index.cjs";
export const { Accounts, BoardTop, Boards, Holds, Lobby, Room, Rooms, Scene, Scenes, SeatMap, Session, View } = all;
