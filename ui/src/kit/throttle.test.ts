// A value that changes all the time is passed on, but not each time.
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Throttle } from "./throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("what flaps is passed on at once, and then at most each five seconds", () => {
  const passed: string[] = [];
  const throttle = new Throttle<string>("", (value) => passed.push(value), 5000);
  for (let second = 0; second < 12; second += 1) {
    throttle.push(`${second}`);
    vi.advanceTimersByTime(1000);
  }
  expect(passed).toEqual(["0", "4", "9"]);
  vi.advanceTimersByTime(10_000);
  expect(passed).toEqual(["0", "4", "9", "11"]);
});

test("a short change and the return are both passed on", () => {
  const passed: string[] = [];
  const throttle = new Throttle<string>("", (value) => passed.push(value), 5000);
  throttle.push("live");
  throttle.push("reconnecting");
  throttle.push("live");
  vi.advanceTimersByTime(5000);
  expect(passed).toEqual(["live", "reconnecting"]);
  vi.advanceTimersByTime(30_000);
  expect(passed).toEqual(["live", "reconnecting", "live"]);
});

test("nothing comes after the end", () => {
  const passed: number[] = [];
  const throttle = new Throttle<number>(0, (value) => passed.push(value), 5000);
  throttle.push(1);
  throttle.push(2);
  throttle.end();
  vi.advanceTimersByTime(10_000);
  expect(passed).toEqual([1]);
});
