// The answer before a request that failed, with its time: it stays on the page below the alert.
import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";

interface Kept<T> {
  of: string;
  data: T;
  /** By the clock of the browser, in milliseconds. */
  at: number;
}

/** The newest answer about an object, also of a request whose key changed since. */
export function useFormer<T>(
  { data, dataUpdatedAt: at, isPlaceholderData }: UseQueryResult<T>,
  of: string,
): Kept<T> | undefined {
  const [kept, setKept] = useState<Kept<T>>();
  const isNew = data !== undefined && !isPlaceholderData;
  if (isNew && (kept?.data !== data || kept.of !== of || kept.at !== at)) {
    setKept({ of, data, at });
  }
  if (isNew) return { of, data, at };
  return kept?.of === of ? kept : undefined;
}
