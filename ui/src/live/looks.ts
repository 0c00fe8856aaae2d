// The looks of projects, by those that there are.
import { useMemo } from "react";

import { type Looks, LOOKS, looksOf } from "../kit/project-color";
import { useSome } from "./client";

/** The first projects by age have looks that no other of them has. */
export function useLooks(): Looks {
  const oldest = useSome({ kind: "project", sort: "createdAt", to: LOOKS })?.objects ?? [];
  const ids = oldest.map(({ id }) => id).join("\n");
  return useMemo(() => looksOf(ids.split("\n")), [ids]);
}
