// Answers of the kit's calls: the types of the JavaScript client.

import type { Hold as SoldOrHeld } from "../../../../../client/js/src/kit/types.gen.js";

export type {
  Account,
  BoardCard,
  BoardView,
  Resource,
  RoomCard,
  RoomDocument,
  SceneInfo as SceneCard,
  SceneView as Scene,
} from "../../../../../client/js/src/kit/types.gen.js";
export type { AccountEvent, RoomRecord as Room } from "../../../../../client/js/src/server/types.gen.js";

/** Hold is the value of a field $$hold/{id} of a resource's channel. */
export type Hold = Omit<SoldOrHeld, "id" | "resource" | "until" | "last"> & { units?: boolean };
