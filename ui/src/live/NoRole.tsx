// A page whose objects no role of the caller shows: which roles do, and where they are given.
import { useQuery } from "@tanstack/react-query";

import { get } from "../api/http";
import type { Action } from "../api/rights";
import { useSession } from "../api/session";
import type { RoleV1 } from "../api/types";
import { NoRight } from "../kit/States";

interface Props {
  /** The page in words, as in "to see nodes". */
  what: string;
  /** In the words of roles. */
  resource: string;
  action?: Action;
}

/** The names of the roles with this right, none while they are asked, and why they are not known. */
function useRoles(resource: string, action: Action): { roles: string[]; problem?: string } {
  const { data, error } = useQuery({
    queryKey: ["roles"],
    queryFn: () => get<RoleV1[]>("/api/v1/authorization/roles"),
  });
  const grants = ({ effectiveEnabled, permissions }: RoleV1) =>
    effectiveEnabled &&
    permissions.some((of) => of.resourceType === resource && of.actions.includes(action));
  const roles = data?.filter(grants).map(({ name }) => name) ?? [];
  return error ? { roles, problem: error.message } : { roles };
}

export function NoRole({ what, resource, action = "read" }: Props): React.ReactNode {
  const { kind, name } = useSession().info?.principal ?? { kind: "user", name: "NAME" };
  const flag = kind === "service-account" ? "--service-account" : "--user";
  return <NoRight what={what} who={`${flag} ${name}`} {...useRoles(resource, action)} />;
}
