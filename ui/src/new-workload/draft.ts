// Input of the form of a new workload, and the request that it becomes.

export interface Draft {
  projectId: string | null;
  name: string;
  environment: string | null;
  compute: string | null;
  command: string;
  arguments: string;
}

/** The key under which it is kept. */
export const DRAFT = "elastane-new-training";

export const EMPTY: Draft = {
  projectId: null,
  name: "",
  environment: null,
  compute: null,
  command: "",
  arguments: "",
};

/** The body of the creation. */
export function toRequest(draft: Draft, clusterId: string | undefined): object {
  const { projectId, name, environment, compute, command } = draft;
  const args = draft.arguments;
  return {
    name,
    projectId,
    clusterId,
    spec: {
      ...(command.trim() && { command: command.trim() }),
      ...(args.trim() && { args: args.trim() }),
      assets: { environment, compute },
    },
  };
}

/** Problem of a name; `project` is the one in which a living workload has it. */
export function nameProblem(name: string, project: string | undefined): string | undefined {
  if (name === "") return "a name is needed";
  if (!/^[a-z]([a-z0-9-]*[a-z0-9])?$/u.test(name)) {
    return "lower-case letters, digits and -, beginning with a letter and not ending with -";
  }
  return project && `the name is taken in ${project}; choose a different one`;
}
