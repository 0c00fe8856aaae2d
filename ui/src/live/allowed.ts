// The projects in which the caller may do something, as conditions of a view.
import { type Action, scopesOf } from "../api/rights";
import { useSession } from "../api/session";
import type { Condition } from "./conditions";

/** The conditions of which a project fulfils one if the action is allowed in it; none if it is everywhere. */
export function useAllowed(resource: string, action: Action): Condition[] | undefined {
  const scopes = scopesOf(useSession().info, resource, action);
  if (!scopes) return undefined;
  return [
    { field: "parentId", operator: "==", value: scopes.departments.join("|") },
    { field: "id", operator: "==", value: scopes.projects.join("|") },
  ];
}
