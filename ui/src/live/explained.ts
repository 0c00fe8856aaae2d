// Explanations of workloads, in parts: what is known at once, and what has to be tried out.
import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import { get } from "../api/http";
import type { Explanation } from "../api/types";

/** Parts of an explanation; requested again when the moment changes, never by the clock. */
export function useExplanation(
  parts: "known" | "diagnosis,estimate",
  id: string,
  moment: unknown[],
): UseQueryResult<Explanation> {
  return useQuery({
    queryKey: ["explain", id, parts, ...moment],
    queryFn: () => get<Explanation>(`/elastane/v1/workloads/${id}/explain?parts=${parts}`),
    // Of the same workload alone.
    placeholderData: (before, query) => (query?.queryKey[1] === id ? before : undefined),
  });
}
