import { MemberClient } from "./member.js";
import { SdkClient } from "./sdk.js";
import { SeatClient } from "./seats.js";
import { Session } from "./session.js";

const roles = { member: MemberClient, sdk: SdkClient, seat: SeatClient };

/** Creates the client of a plan. Without a role it receives messages. */
export const newClient = (plan, open, report) => new (roles[plan.role] ?? Session)(plan, open, report);
