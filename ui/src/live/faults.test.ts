// Each kind of fault of a worker's scope is passed on, once, with a text that says what it was.
import { expect, test } from "vitest";

import { watchFaults } from "./faults";

function eventOf(type: string, fields: object): Event {
  return Object.assign(new Event(type), fields);
}

test("errors, rejections and refusals of the policy are passed on", () => {
  const scope = new EventTarget();
  const told: string[] = [];
  watchFaults(scope, (fault) => told.push(fault));
  scope.dispatchEvent(eventOf("error", { error: new TypeError("no row"), message: "shorter" }));
  scope.dispatchEvent(eventOf("error", { message: "Script error." }));
  scope.dispatchEvent(eventOf("unhandledrejection", { reason: new Error("not awaited") }));
  scope.dispatchEvent(eventOf("unhandledrejection", { reason: "a text" }));
  const blockedURI = "http://other.invalid/";
  scope.dispatchEvent(
    eventOf("securitypolicyviolation", { violatedDirective: "connect-src", blockedURI }),
  );
  expect(told.map((fault) => fault.split("\n")[0])).toEqual([
    "TypeError: no row",
    "Script error.",
    "unhandled rejection: Error: not awaited",
    "unhandled rejection: a text",
    "refused by the policy: connect-src http://other.invalid/",
  ]);
  // The stack says where the error was thrown.
  expect(told[0]).toContain("faults.test.ts");
});

test("a stack without the message follows the message", () => {
  const scope = new EventTarget();
  const told: string[] = [];
  watchFaults(scope, (fault) => told.push(fault));
  const error = Object.assign(new Error("no row"), { stack: "add@worker.js:1:2" });
  scope.dispatchEvent(eventOf("error", { error }));
  expect(told).toEqual(["Error: no row\nadd@worker.js:1:2"]);
});
