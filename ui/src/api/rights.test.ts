// Tests of rights: which scope covers which place, and what is one's own.
import { describe, expect, test } from "vitest";

import { may, scopesOf, type SessionInfo, type SessionRight } from "./rights";

function caller(...rights: Partial<SessionRight>[]): SessionInfo {
  const actions = { trainings: ["create", "read", "update", "delete"] };
  const common = { scopeName: "", ownOnly: false, actions };
  return {
    principal: { kind: "user", name: "ann" },
    rights: rights.map((right) => ({ ...common, ...right })),
  } as SessionInfo;
}

const IN_A = { departmentId: "1", projectId: "7", madeBy: "bob" };
const IN_B = { departmentId: "2", projectId: "1", madeBy: "bob" };

describe("rights", () => {
  test("a role in a project is of no use in another, nor in the cluster", () => {
    const ann = caller({ scopeType: "project", scopeId: "7" });
    expect(may(ann, "trainings", "update", IN_A)).toBe(true);
    expect(may(ann, "trainings", "update", IN_B)).toBe(false);
    expect(may(ann, "trainings", "create", {})).toBe(false);
    expect(may(ann, "trainings", "create")).toBe(true);
    expect(may(ann, "workspaces", "update", IN_A)).toBe(false);
  });

  test("the ids of departments are not those of projects", () => {
    const ann = caller({ scopeType: "department", scopeId: "1" });
    expect(may(ann, "trainings", "update", IN_A)).toBe(true);
    expect(may(ann, "trainings", "update", IN_B)).toBe(false);
  });

  test.each(["tenant", "cluster"] as const)("a role in the %s counts everywhere", (scopeType) => {
    const ann = caller({ scopeType, scopeId: "x" });
    expect(may(ann, "trainings", "delete", IN_B)).toBe(true);
    expect(may(ann, "trainings", "create", {})).toBe(true);
  });

  test("a role for one's own changes nothing of others, and reads and creates all the same", () => {
    const ann = caller({ scopeType: "project", scopeId: "7", ownOnly: true });
    expect(may(ann, "trainings", "update", IN_A)).toBe(false);
    expect(may(ann, "trainings", "update", { ...IN_A, madeBy: "ann" })).toBe(true);
    expect(may(ann, "trainings", "read", IN_A)).toBe(true);
    expect(may(ann, "trainings", "create", IN_A)).toBe(true);
  });

  test("objects of an earlier account of the same name are not the caller's own", () => {
    const ann = caller({ scopeType: "project", scopeId: "7", ownOnly: true });
    ann.principal.since = "2026-11-28T09:00:00.000Z";
    const mine = { ...IN_A, madeBy: "ann" };
    expect(may(ann, "trainings", "delete", { ...mine, madeAt: "2026-11-28T09:00:00.000Z" })).toBe(
      true,
    );
    expect(may(ann, "trainings", "delete", { ...mine, madeAt: "2026-11-28T08:59:59.999Z" })).toBe(
      false,
    );
  });

  test("a role for one's own does not narrow another one", () => {
    const ann = caller(
      { scopeType: "cluster", scopeId: "x", ownOnly: true },
      { scopeType: "project", scopeId: "7" },
    );
    expect(may(ann, "trainings", "delete", IN_A)).toBe(true);
    expect(may(ann, "trainings", "delete", IN_B)).toBe(false);
  });

  test("without a session nothing is allowed, and properties of objects are no resources", () => {
    expect(may(null, "trainings", "read")).toBe(false);
    const ann = caller({ scopeType: "tenant", scopeId: "x" });
    expect(may(ann, "constructor", "read")).toBe(false);
  });

  test("scopes in which something is allowed", () => {
    const ann = caller(
      { scopeType: "project", scopeId: "7" },
      { scopeType: "department", scopeId: "1" },
      { scopeType: "project", scopeId: "8", actions: {} },
    );
    expect(scopesOf(ann, "trainings", "create")).toEqual({ departments: ["1"], projects: ["7"] });
    const all = caller({ scopeType: "cluster", scopeId: "x" });
    expect(scopesOf(all, "trainings", "create")).toBeUndefined();
    expect(scopesOf(null, "trainings", "create")).toEqual({ departments: [], projects: [] });
  });
});
