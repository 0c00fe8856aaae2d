// The pages of environments and of compute resources.
import { useState } from "react";
import { useParams } from "wouter";

import { useMay } from "../api/session";
import type { ComputeAsset, EnvironmentAsset } from "../api/types";
import { ComputeForm, EnvironmentForm } from "../asset-forms/AssetForm";
import { printQuantity, printCompute } from "../asset-forms/compute";
import { Button } from "../kit/Button";
import type { Column } from "../kit/grid/columns";
import page from "../kit/page.module.css";
import { Empty, NoPage } from "../kit/States";
import { Age } from "../kit/time";
import { LiveGrid } from "../live/LiveGrid";
import { NoRole } from "../live/NoRole";

type Asset = EnvironmentAsset | ComputeAsset;

const spec = (asset: Asset) => asset.spec as EnvironmentAsset["spec"] & ComputeAsset["spec"];

function scope({ meta }: Asset): string {
  return meta.projectName ? `project ${meta.projectName}` : meta.scope;
}

const NAME: Column<Asset> = {
  id: "name",
  name: "Name",
  width: 160,
  grows: 1,
  rank: 0,
  sort: "meta.name",
  cell: ({ meta }) => <b style={{ fontWeight: 600 }}>{meta.name}</b>,
};

const REST: Column<Asset>[] = [
  { id: "scope", name: "Scope", width: 150, rank: 3, sort: "meta.scope", cell: scope },
  {
    id: "createdBy",
    name: "Created by",
    width: 140,
    rank: 5,
    sort: "meta.createdBy",
    cell: ({ meta }) => meta.createdBy,
  },
  {
    id: "age",
    name: "Age",
    width: 84,
    rank: 4,
    isNumber: true,
    sort: "meta.createdAt",
    cell: ({ meta }) => <Age of={meta.createdAt} />,
  },
];

const ENVIRONMENTS: Column<Asset>[] = [
  NAME,
  {
    id: "image",
    name: "Image",
    width: 240,
    grows: 1,
    least: 110,
    rank: 1,
    sort: "spec.image",
    cell: (asset) => <code>{spec(asset).image}</code>,
  },
  ...REST,
];

const COMPUTE: Column<Asset>[] = [
  NAME,
  {
    id: "gpus",
    name: "GPUs per pod",
    width: 190,
    rank: 1,
    sort: "spec.gpuDevicesRequest",
    cell: (asset) => printCompute(spec(asset)),
  },
  {
    id: "cores",
    name: "CPU (cores)",
    width: 110,
    rank: 2,
    isNumber: true,
    sort: "spec.cpuCoreRequest",
    cell: (asset) => spec(asset).cpuCoreRequest,
  },
  {
    id: "memory",
    name: "CPU memory",
    width: 110,
    rank: 2,
    isNumber: true,
    cell: (asset) => printQuantity(spec(asset).cpuMemoryRequest ?? ""),
  },
  ...REST,
];

const PAGES = new Map<string, PageOf>([
  [
    "environments",
    {
      title: "Environments",
      action: "+NEW ENVIRONMENT",
      kind: "environment",
      columns: ENVIRONMENTS,
      about: "An environment is an image with what is around it, kept for reuse.",
      Form: EnvironmentForm,
    },
  ],
  [
    "compute-resources",
    {
      title: "Compute resources",
      action: "+NEW COMPUTE RESOURCE",
      kind: "compute",
      columns: COMPUTE,
      about: "A compute resource says how many GPUs, CPUs and how much memory a pod gets.",
      Form: ComputeForm,
    },
  ],
]);

interface PageOf {
  title: string;
  action: string;
  kind: string;
  columns: Column<Asset>[];
  about: string;
  Form: typeof EnvironmentForm;
}

export default function Assets(): React.ReactNode {
  const { kind = "" } = useParams<{ kind: string }>();
  const found = PAGES.get(kind);
  const mayRead = useMay(kind, "read");
  const mayCreate = useMay(kind, "create");
  const [isOpen, setOpen] = useState(false);
  const [made, setMade] = useState<string>();
  if (!found) return <NoPage />;
  const { title, action, columns, about, Form } = found;
  if (!mayRead) return <NoRole what={title.toLowerCase()} resource={kind} />;
  return (
    <>
      <div className={page.top}>
        <h1>{title}</h1>
        <span className={page.grow} />
        {mayCreate && (
          <Button kind="main" onPress={() => setOpen(true)}>
            {action}
          </Button>
        )}
      </div>
      <LiveGrid
        key={kind}
        kind="asset"
        label={title}
        columns={columns}
        always={[{ field: "meta.kind", operator: "==", value: found.kind }]}
        sort="meta.name"
        selected={made}
        empty={
          <Empty title={`No ${title.toLowerCase()} yet`}>
            <p className="muted">{about}</p>
            {mayCreate && <Button onPress={() => setOpen(true)}>Create the first</Button>}
          </Empty>
        }
      />
      {isOpen && <Form onClose={() => setOpen(false)} onCreated={setMade} />}
    </>
  );
}
