// Tests of templates: what they fill in, what stays of what was typed, and what a request names.
import { describe, expect, test } from "vitest";

import type { TemplateRow } from "../live/rows";
import { AS_IN_TEMPLATE, EMPTY, toRequest } from "./draft";
import { restOf, withTemplate } from "./template";

function template(spec: TemplateRow["spec"]): TemplateRow {
  const scope = { scopeType: "tenant", scopeId: "1" } as const;
  const made = { createdAt: "", createdBy: "", updatedAt: "", updatedBy: "" };
  return { meta: { id: "t", name: "bert", workloadType: "Training", ...scope, ...made }, spec };
}

const WHOLE = template({
  image: "x",
  command: "python",
  args: "train.py",
  compute: { gpuDevicesRequest: 1 },
  environmentVariables: [{ name: "A", value: "b" }],
  labels: [{ name: "k", value: "v", exclude: false }],
});

describe("templates", () => {
  test("fill what they have, and leave the rest to be chosen", () => {
    const draft = { ...EMPTY, ...withTemplate(EMPTY, undefined, WHOLE) };
    expect(draft.template).toEqual({ id: "t", name: "bert" });
    expect([draft.environment, draft.compute]).toEqual([AS_IN_TEMPLATE, AS_IN_TEMPLATE]);
    expect([draft.command, draft.arguments]).toEqual(["python", "train.py"]);
    const some = { ...EMPTY, ...withTemplate(EMPTY, undefined, template({ command: "sh" })) };
    expect([some.environment, some.compute]).toEqual([null, null]);
  });

  test("what was typed since stays with another template; what the former one filled does not", () => {
    const draft = { ...EMPTY, ...withTemplate(EMPTY, undefined, WHOLE), arguments: "mine.py" };
    const next = { ...draft, ...withTemplate(draft, WHOLE, undefined) };
    expect(next).toMatchObject({ template: null, environment: null, command: "" });
    expect(next.arguments).toBe("mine.py");
  });

  test("a request names the template, and only what differs from it or is shown", () => {
    const draft = { ...EMPTY, ...withTemplate(EMPTY, undefined, WHOLE), compute: "c1" };
    expect(toRequest(draft, "cluster")).toMatchObject({
      templateId: "t",
      spec: { command: "python", args: "train.py", assets: { compute: "c1" } },
    });
    expect(JSON.stringify(toRequest(draft, "cluster"))).not.toContain(AS_IN_TEMPLATE);
    expect(toRequest({ ...EMPTY, environment: "e1" }, "cluster")).not.toHaveProperty("templateId");
  });

  test("their other fields are listed", () => {
    expect(restOf(WHOLE)).toEqual([
      ["environmentVariables", "A=b"],
      ["labels", '{"name":"k","value":"v","exclude":false}'],
    ]);
  });
});
