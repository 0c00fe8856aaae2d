// The forms of a new environment and a new compute resource, as sheets over what one was doing.
import { useState } from "react";

import { type ApiError, post } from "../api/http";
import type { AssetMeta } from "../api/types";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { type Choice, NumberField, Select, TextField } from "../kit/Fields";
import kit from "../kit/kit.module.css";
import { Failure } from "../kit/States";
import { useAll } from "../live/client";
import { useMay } from "../api/session";

interface Common {
  onClose: () => void;
  /** With the id of what was created. */
  onCreated: (id: string) => void;
}

/** Where an asset can be used: everywhere, or in one project. */
function useScopes(resource: string): Choice[] {
  const mayRead = useMay(resource, "create");
  const server = useAll("server", "id")?.[0];
  const projects = useAll("project", "name") ?? [];
  if (!mayRead) return [];
  return [
    { id: "cluster", name: `Cluster ${server?.clusterName ?? ""}` },
    ...projects.map(({ id, name }) => ({ id: `project/${id}`, name: `Project ${name}` })),
  ];
}

function scopeOf(choice: string, clusterId: string | undefined): object {
  const project = /^project\/(.+)$/u.exec(choice)?.[1];
  return project
    ? { scope: "project", projectId: Number(project) }
    : { scope: "cluster", clusterId };
}

interface FormProps extends Common {
  title: string;
  action: string;
  resource: string;
  path: string;
  /** The specification; a text says what is wrong in its fields. */
  spec: () => object | undefined;
  children: (tried: boolean) => React.ReactNode;
}

function AssetForm(props: FormProps): React.ReactNode {
  const { title, action, resource, path, spec, children, onClose, onCreated } = props;
  const server = useAll("server", "id")?.[0];
  const scopes = useScopes(resource);
  const [scope, setScope] = useState("cluster");
  const [name, setName] = useState("");
  const [tried, setTried] = useState(false);
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<ApiError>();
  const wrong = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/u.test(name)
    ? undefined
    : "lower-case letters, digits and -, not at the ends";
  const submit = (event: React.FormEvent) => {
    event.preventDefault();
    // It stands in a form: this one is meant, not that.
    event.stopPropagation();
    setTried(true);
    const filled = spec();
    if (wrong || !filled || pending) return;
    setPending(true);
    setError(undefined);
    const meta = { name, ...scopeOf(scope, server?.clusterId) };
    post<{ meta: AssetMeta }>(path, { meta, spec: filled }).then(
      (created) => {
        onCreated(created.meta.id);
        onClose();
      },
      (failure: ApiError) => {
        setPending(false);
        setError(failure);
      },
    );
  };
  return (
    <Dialog title={title} isOpen onClose={onClose} isSheet>
      <form className={kit.field} style={{ gap: 16 }} onSubmit={submit}>
        <Select label="Scope" value={scope} onChange={setScope} choices={scopes} />
        <TextField
          label="Name"
          help="unique in its scope"
          value={name}
          onChange={setName}
          problem={tried ? wrong : undefined}
          isRequired
          autoFocus
        />
        {children(tried)}
        {error && <Failure error={error} />}
        <div className={kit.actions}>
          <Button onPress={onClose}>CANCEL</Button>
          <Button type="submit" kind="main" isPending={pending}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

export function EnvironmentForm(props: Common): React.ReactNode {
  const [image, setImage] = useState("");
  const problem = image.trim() === "" ? "an address of an image is needed" : undefined;
  return (
    <AssetForm
      {...props}
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
          onChange={setImage}
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

export function ComputeForm(props: Common): React.ReactNode {
  const [devices, setDevices] = useState(1);
  const [unit, setUnit] = useState("portion");
  const [memory, setMemory] = useState(100);
  const [cores, setCores] = useState(0.1);
  const [cpuMemory, setCpuMemory] = useState(100);
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
            onChange={setDevices}
            problem={tried ? wrong.devices : undefined}
          />
          {devices !== 0 && (
            <>
              <Select
                label="GPU memory per device"
                value={unit}
                onChange={setUnit}
                choices={UNITS}
              />
              <NumberField
                label="Request"
                help={unit === "portion" ? "of the memory of a GPU, 1 to 100 %" : undefined}
                value={memory}
                onChange={setMemory}
                problem={tried ? wrong.memory : undefined}
              />
            </>
          )}
          <NumberField
            label="CPU compute per pod (cores)"
            value={cores}
            onChange={setCores}
            problem={tried ? wrong.cores : undefined}
          />
          <NumberField
            label="CPU memory per pod (MB)"
            value={cpuMemory}
            onChange={setCpuMemory}
            problem={tried ? wrong.cpuMemory : undefined}
          />
        </>
      )}
    </AssetForm>
  );
}
