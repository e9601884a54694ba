// An application for React Native: the clients of js/sdk.js. Their plans are the event "plans".
import "react-native/Libraries/Core/setUpGlobals";
import "react-native/Libraries/Core/setUpTimers";
import "react-native/Libraries/Core/setUpXHR";
import "react-native/Libraries/Core/setUpRegeneratorRuntime";
import AppState from "react-native/Libraries/AppState/AppState";
import events from "react-native/Libraries/EventEmitter/RCTDeviceEventEmitter";
import { Switchboard, SwitchboardError } from "switchboard-client";
import { Accounts } from "switchboard-client/kit";
import { SdkClient } from "../js/sdk.js";

const report = (event) => globalThis.toHost({ report: event });
const check = (ok, what) => ok || report({ event: "error", detail: what });

let clients;
events.addListener("plans", (plans) => {
  clients = plans.map((plan) => new SdkClient(plan, undefined, report, { appState: AppState }));
  check(clients[0].sb instanceof Switchboard, "the package has two clients");
  check(typeof document === "undefined" && typeof crypto === "undefined", "this is no React Native");
  const http = plans[0].urls[0].replace(/^ws/, "http").replace(/\/ws$/, "");
  new Accounts(http).resume("a renewal").then(
    () => check(false, "a system that is off has answered"),
    (error) =>
      check(error instanceof SwitchboardError && error.status === 404, `the HTTP API: ${error} ${error.status}`),
  );
});
events.addListener("leave", () => clients.forEach((client) => client.leave()));
