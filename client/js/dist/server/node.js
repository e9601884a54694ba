import all from "./index.cjs";
export const { ApiError, Backend, Kit, SwitchboardError, parseSigned, signToken, verifySignature } = all;
