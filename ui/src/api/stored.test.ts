// Tests of kept texts: in the storage, and where it takes nothing.
import { afterEach, expect, test, vi } from "vitest";

import { Stored } from "./stored";

afterEach(() => vi.unstubAllGlobals());

function storage(kept: Map<string, string>, take: (key: string, text: string) => void) {
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: take,
    removeItem: (key: string) => kept.delete(key),
  });
}

test("a text is kept for other tabs, and forgotten", () => {
  const kept = new Map<string, string>();
  storage(kept, (key, text) => kept.set(key, text));
  const one = new Stored("k");
  one.text = "light";
  expect(new Stored("k").text).toBe("light");
  kept.set("k", "dark");
  expect(one.text).toBe("dark");
  one.text = null;
  expect(kept.size).toBe(0);
});

test("a full storage: the page has the new text, not the old one", () => {
  storage(new Map([["k", "light"]]), () => {
    throw new Error("QuotaExceededError");
  });
  const one = new Stored("k");
  one.text = "dark";
  expect(one.text).toBe("dark");
});

test("a storage that is refused: the text lives as long as the page", () => {
  vi.stubGlobal("localStorage", undefined);
  const one = new Stored("k");
  expect(one.text).toBeNull();
  one.text = "dark";
  expect(one.text).toBe("dark");
  one.text = null;
  expect(one.text).toBeNull();
});
