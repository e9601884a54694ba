import all from "./index.cjs";
export const { SignedOutError, Switchboard, SwitchboardError } = all;
