// Rights of the caller: by action, resource and scope, and of what one made oneself.

export interface SessionRight {
  scopeType: "system" | "tenant" | "cluster" | "department" | "project";
  scopeId: string;
  scopeName: string;
  /** Changes only what the caller made. */
  ownOnly: boolean;
  actions: Record<string, string[]>;
}

/** Answer of `/elastane/v1/session`. */
export interface SessionInfo {
  pageSecret?: string;
  principal: {
    kind: "local" | "admin" | "user" | "service-account";
    id?: string;
    name: string;
    /** Creation of the account: older objects belong to an earlier account of this name. */
    since?: string;
  };
  mustChangePassword: boolean;
  byLink: boolean;
  expiresAt: string;
  rights: SessionRight[];
  versions: { server: string; interface: string };
}

/** The session, if there is one and it is known. */
type Caller = SessionInfo | null | undefined;

export type Action = "create" | "read" | "update" | "delete";

/** Scope, creator and creation time of an object; the whole cluster without ids. */
export interface Place {
  departmentId?: string | undefined;
  projectId?: string | undefined;
  madeBy?: string;
  madeAt?: string;
}

function has({ actions }: SessionRight, resource: string, action: Action): boolean {
  return Object.hasOwn(actions, resource) && actions[resource]?.includes(action) === true;
}

/** A part of the organization. */
export type Scope = Pick<SessionRight, "scopeType" | "scopeId">;

/** True if the place is in the scope. */
export function contains({ scopeType, scopeId }: Scope, place: Place): boolean {
  switch (scopeType) {
    case "tenant":
    case "cluster":
      return true;
    case "department":
      return scopeId === place.departmentId;
    case "project":
      return scopeId === place.projectId;
    case "system":
      return false;
  }
}

/** True if a right allows it at the place, or without one in some scope. Resources are in the words of roles. */
export function may(caller: Caller, resource: string, action: Action, place?: Place): boolean {
  const isOfAnyone = action === "create" || action === "read";
  const { name, since = "" } = caller?.principal ?? {};
  const isOwn = isOfAnyone || (place?.madeBy === name && (place?.madeAt ?? "") >= since);
  return (caller?.rights ?? []).some(
    (right) =>
      has(right, resource, action) &&
      (!place || (contains(right, place) && (isOwn || !right.ownOnly))),
  );
}

/** The ids of departments and projects in which a right allows it; nothing if one does everywhere. */
export function scopesOf(
  caller: Caller,
  resource: string,
  action: Action,
): { departments: string[]; projects: string[] } | undefined {
  if (may(caller, resource, action, {})) return undefined;
  const rights = (caller?.rights ?? []).filter((right) => has(right, resource, action));
  const of = (type: SessionRight["scopeType"]) =>
    rights.filter(({ scopeType }) => scopeType === type).map(({ scopeId }) => scopeId);
  return { departments: of("department"), projects: of("project") };
}
