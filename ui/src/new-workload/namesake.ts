// The workload that has the name already.
import { useSome } from "../live/client";
import type { WorkloadRow } from "../live/rows";
import type { Draft } from "./draft";

/** The living workload of the project that has the name, if there is one. */
export function useNamesake({ projectId, name }: Draft): WorkloadRow | undefined {
  const found = useSome({
    kind: "workload",
    conditions: [
      { field: "projectId", operator: "==", value: projectId ?? "" },
      { field: "name", operator: "==", value: name },
    ],
    to: 1,
  });
  return name === "" ? undefined : found?.objects[0];
}
