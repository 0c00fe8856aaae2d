// The choices of the form for its project: templates, environments, compute resources, and which are gone.
import { contains, type Place } from "../api/rights";
import type { ComputeAsset, EnvironmentAsset } from "../api/types";
import { printCompute } from "../asset-forms/compute";
import type { Tile } from "../kit/TileGroup";
import { useAll, useSome } from "../live/client";
import type { TemplateRow } from "../live/rows";
import { AS_IN_TEMPLATE, type Draft } from "./draft";

type Asset = EnvironmentAsset | ComputeAsset;

/** Where the draft's project is; the whole cluster before one is chosen, undefined until it is known. */
export function usePlace({ projectId }: Draft): Place | undefined {
  const id = { field: "id", operator: "==" as const, value: projectId ?? "" };
  const found = useSome({ kind: "project", conditions: [id], to: 1 });
  const project = found?.objects[0];
  return found && (project ? { projectId: project.id, departmentId: project.parentId } : {});
}

export interface Templates {
  /** The templates of trainings that the project may use. */
  all: TemplateRow[];
  chosen: TemplateRow | undefined;
  /** One was chosen, and is deleted or of another project. */
  isGone: boolean;
}

/** Undefined until they are known. */
export function useTemplates({ template }: Draft, place: Place | undefined): Templates | undefined {
  const live = useAll("template", "meta.name");
  if (!live || !place) return undefined;
  const all = live.filter(({ meta }) => meta.workloadType === "Training" && contains(meta, place));
  const chosen = all.find(({ meta }) => meta.id === template?.id);
  return { all, chosen, isGone: template !== null && !chosen };
}

export interface Gallery {
  tiles: Tile[];
  /** None is chosen, or it is gone. */
  problem: string | undefined;
  /** True if the chosen one is gone: told at once. */
  isGone: boolean;
}

/** The galleries of environments and of compute resources; undefined until they are known. */
export function useGalleries(
  draft: Draft,
  place: Place | undefined,
  template: TemplateRow | undefined,
): { environment: Gallery; compute: Gallery } | undefined {
  const live = useAll("asset", "meta.name");
  if (!live || !place) return undefined;
  const assets = live.filter((asset) => isUsable(asset, place) && isForTrainings(asset));
  const environments = assets.filter(isEnvironment);
  const computes = assets.filter(isCompute);
  const { image, compute, assets: named } = template?.spec ?? {};
  const nameOf = (id: string | undefined) =>
    id && (assets.find(({ meta }) => meta.id === id)?.meta.name ?? id);
  return {
    environment: gallery("an environment", draft.environment, [
      ...ofTemplate([nameOf(named?.environment), image]),
      ...environments.map(({ meta, spec }) => tile(meta, spec.image ?? "")),
    ]),
    compute: gallery("a compute resource", draft.compute, [
      ...ofTemplate([nameOf(named?.compute), compute && printCompute(compute)]),
      ...computes.map(({ meta, spec }) => tile(meta, printCompute(spec))),
    ]),
  };
}

function ofTemplate(texts: (string | undefined)[]): Tile[] {
  const said = texts.filter(Boolean).join(", ");
  return said ? [{ id: AS_IN_TEMPLATE, name: "As in the template", detail: said }] : [];
}

function tile({ id, name }: Asset["meta"], detail: string): Tile {
  return { id, name, detail };
}

function gallery(what: string, chosen: string | null, tiles: Tile[]): Gallery {
  const isGone = chosen !== null && !tiles.some(({ id }) => id === chosen);
  const choose = `choose ${what}`;
  const gone = `what was chosen is not there any more; ${choose}`;
  return { tiles, isGone, problem: isGone ? gone : chosen === null ? choose : undefined };
}

function isEnvironment(asset: Asset): asset is EnvironmentAsset {
  return asset.meta.kind === "environment";
}

function isCompute(asset: Asset): asset is ComputeAsset {
  return asset.meta.kind === "compute";
}

function isUsable({ meta }: Asset, { projectId, departmentId }: Place): boolean {
  if (meta.scope === "project") return String(meta.projectId) === projectId;
  return meta.scope !== "department" || meta.departmentId === departmentId;
}

/** True if trainings may use an asset: all may use one that names no kind of workload. */
function isForTrainings({ meta }: Asset): boolean {
  const { training, workspace, inference, distributed } = meta.workloadSupportedTypes ?? {};
  return training === true || !(workspace || inference || distributed);
}
