// The forms of a new environment and a new compute resource, as sheets over what one was doing.
import { post } from "../api/http";
import { may } from "../api/rights";
import { useMay, useSession } from "../api/session";
import { useSubmit } from "../api/submit";
import type { AssetMeta } from "../api/types";
import { Button } from "../kit/Button";
import { Actions, Dialog } from "../kit/Dialog";
import { type Choice, NumberField, Select, TextField } from "../kit/Fields";
import { useKept } from "../kit/kept";
import kit from "../kit/kit.module.css";
import { Failure } from "../kit/States";
import { useAllowed } from "../live/allowed";
import { useAll, useServer, useSome } from "../live/client";

interface Common {
  onClose: () => void;
  /** With the id of what was created. */
  onCreated: (id: string) => void;
  /** The project in which it is to be used. */
  projectId?: string | undefined;
}

/** Projects that are offered as a scope: a list with more is of no use to anyone. */
const PROJECTS_MAX = 200;

/** Where the caller may make an asset: for all projects, those of a department, or one. */
function useScopes(resource: string, projectId: string | undefined): Choice[] {
  const { info } = useSession();
  const everywhere = useMay(resource, "create", {});
  const departments = useAll("department", "name")?.filter(({ id }) =>
    may(info, resource, "create", { departmentId: id }),
  );
  const server = useServer();
  const anyOf = useAllowed(resource, "create");
  const projects = useSome({ kind: "project", anyOf, sort: "name", to: PROJECTS_MAX });
  const isOwn = { field: "id", operator: "==" as const, value: projectId ?? "" };
  const own = useSome({ kind: "project", conditions: [isOwn], to: 1 })?.objects[0];
  const mayHere =
    own && may(info, resource, "create", { projectId: own.id, departmentId: own.parentId });
  const listed = projects?.objects ?? [];
  const isListed = listed.some(({ id }) => id === projectId);
  const cluster = { id: "cluster", name: `Cluster ${server?.clusterName ?? ""}` };
  return [
    ...(everywhere ? [cluster] : []),
    ...(departments ?? []).map((one) => choice("department", "Department", one)),
    ...(mayHere && !isListed ? [own, ...listed] : listed).map((one) =>
      choice("project", "Project", one),
    ),
  ];
}

function choice(scope: string, word: string, { id, name }: Choice): Choice {
  return { id: `${scope}/${id}`, name: `${word} ${name}` };
}

function scopeOf(chosen: string, clusterId: string | undefined): object {
  const [scope, id] = chosen.split("/");
  if (scope === "project") return { scope, projectId: Number(id) };
  return scope === "department" ? { scope, departmentId: id } : { scope, clusterId };
}

interface FormProps extends Common {
  title: string;
  action: string;
  resource: string;
  path: string;
  /** Forgets what was typed. */
  forget: () => void;
  /** The specification; undefined if its fields have a problem. */
  spec: () => object | undefined;
  children: (tried: boolean) => React.ReactNode;
}

const META = { scope: "", name: "" };

function AssetForm(props: FormProps): React.ReactNode {
  const { title, action, resource, path, spec, children, onCreated, projectId } = props;
  const server = useServer();
  const scopes = useScopes(resource, projectId);
  const [{ scope: kept, name }, change, forget] = useKept(`elastane-new-${resource}-meta`, META);
  const isThere = (one: string) => scopes.some(({ id }) => id === one);
  const first = projectId ? undefined : scopes[0]?.id;
  const usual = ["cluster", `project/${projectId}`].find(isThere) ?? first ?? "";
  // A choice that is gone is not replaced by another: an asset would be seen by others than meant.
  const wanted = kept || usual;
  const scope = isThere(wanted) ? wanted : "";
  const filled = spec();
  const close = () => {
    forget();
    props.forget();
    props.onClose();
  };
  const wrong = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/u.test(name)
    ? undefined
    : "lower-case letters, digits and -, not at the ends";
  const { tried, pending, error, submit } = useSubmit({
    isReady: wrong === undefined && filled !== undefined && scope !== "",
    send: () => {
      const meta = { name, ...scopeOf(scope, server?.clusterId) };
      return post<{ meta: AssetMeta }>(path, { meta, spec: filled });
    },
    onSent: ({ meta }) => {
      onCreated(meta.id);
      close();
    },
  });
  return (
    <Dialog title={title} isOpen onClose={close} isSheet>
      <form className={kit.field} style={{ gap: 16 }} onSubmit={submit}>
        <Select
          label="Scope"
          value={scope}
          onChange={(chosen) => change({ scope: chosen })}
          problem={tried && scope === "" ? "choose where it is to be seen" : undefined}
          choices={scopes}
        />
        <TextField
          label="Name"
          help="unique in its scope"
          value={name}
          onChange={(typed) => change({ name: typed })}
          problem={tried ? (wrong ?? error?.fields.name) : undefined}
          isRequired
          autoFocus
        />
        {children(tried)}
        {error && <Failure error={error} />}
        <Actions>
          <Button onPress={close}>CANCEL</Button>
          <Button type="submit" kind="main" isPending={pending}>
            {action}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}

export function EnvironmentForm(props: Common): React.ReactNode {
  const [{ image }, change, forget] = useKept("elastane-new-environment", { image: "" });
  const problem = image.trim() === "" ? "an address of an image is needed" : undefined;
  return (
    <AssetForm
      {...props}
      forget={forget}
      title="New environment"
      action="CREATE ENVIRONMENT"
      resource="environments"
      path="/api/v1/asset/environment"
      spec={() => (problem ? undefined : { image: image.trim() })}
    >
      {(tried) => (
        <TextField
          label="Image URL"
          value={image}
          onChange={(typed) => change({ image: typed })}
          problem={tried ? problem : undefined}
          isRequired
        />
      )}
    </AssetForm>
  );
}

const UNITS: Choice[] = [
  { id: "portion", name: "% (of device)" },
  { id: "M", name: "MB" },
  { id: "G", name: "GB" },
];

const COMPUTE = { devices: 1, unit: "portion", memory: 100, cores: 0.1, cpuMemory: 100 };

export function ComputeForm(props: Common): React.ReactNode {
  const [values, change, forget] = useKept("elastane-new-compute", COMPUTE);
  const { devices, unit, memory, cores, cpuMemory } = values;
  const wrong = {
    devices: Number.isInteger(devices) && devices >= 0 ? undefined : "a whole number, 0 or more",
    memory:
      memory > 0 && (unit !== "portion" || memory <= 100) ? undefined : "above 0, at most 100 %",
    cores: cores > 0 ? undefined : "above 0",
    cpuMemory: cpuMemory > 0 ? undefined : "above 0",
  };
  const spec = () => {
    if (Object.values(wrong).some((problem) => problem !== undefined)) return undefined;
    const cpu = { cpuCoreRequest: cores, cpuMemoryRequest: `${cpuMemory}M` };
    if (devices === 0) return { gpuDevicesRequest: 0, ...cpu };
    const gpu =
      unit === "portion"
        ? { gpuRequestType: "portion", gpuPortionRequest: memory / 100 }
        : { gpuRequestType: "memory", gpuMemoryRequest: `${memory}${unit}` };
    return { gpuDevicesRequest: devices, ...gpu, ...cpu };
  };
  return (
    <AssetForm
      {...props}
      forget={forget}
      title="New compute resource"
      action="CREATE COMPUTE RESOURCE"
      resource="compute-resources"
      path="/api/v1/asset/compute"
      spec={spec}
    >
      {(tried) => (
        <>
          <NumberField
            label="GPU devices per pod"
            value={devices}
            onChange={(typed) => change({ devices: typed })}
            problem={tried ? wrong.devices : undefined}
          />
          {devices !== 0 && (
            <>
              <Select
                label="GPU memory per device"
                value={unit}
                onChange={(chosen) => change({ unit: chosen })}
                choices={UNITS}
              />
              <NumberField
                label="Request"
                help={unit === "portion" ? "of the memory of a GPU, 1 to 100 %" : undefined}
                value={memory}
                onChange={(typed) => change({ memory: typed })}
                problem={tried ? wrong.memory : undefined}
              />
            </>
          )}
          <NumberField
            label="CPU compute per pod (cores)"
            value={cores}
            onChange={(typed) => change({ cores: typed })}
            problem={tried ? wrong.cores : undefined}
          />
          <NumberField
            label="CPU memory per pod (MB)"
            value={cpuMemory}
            onChange={(typed) => change({ cpuMemory: typed })}
            problem={tried ? wrong.cpuMemory : undefined}
          />
        </>
      )}
    </AssetForm>
  );
}
