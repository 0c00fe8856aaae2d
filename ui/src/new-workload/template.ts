// Templates of trainings: what one fills in, and what it brings besides.
import type { TemplateRow } from "../live/rows";
import { AS_IN_TEMPLATE, type Draft, EMPTY } from "./draft";

type Filled = Pick<Draft, "environment" | "compute" | "command" | "arguments">;

/** The fields that a template fills in; none without one. */
function fill(template: TemplateRow | undefined): Filled {
  if (!template) return EMPTY;
  const { image, compute, command, args, assets } = template.spec;
  return {
    environment: (assets?.environment ?? image) ? AS_IN_TEMPLATE : null,
    compute: (assets?.compute ?? compute) ? AS_IN_TEMPLATE : null,
    command: command ?? "",
    arguments: args ?? "",
  };
}

/** The draft with another template, or none: what was chosen or typed since the former one stays. */
export function withTemplate(
  draft: Draft,
  before: TemplateRow | undefined,
  next: TemplateRow | undefined,
): Partial<Draft> {
  const was = fill(before);
  const is = fill(next);
  const at = <K extends keyof Filled>(field: K): Filled[K] =>
    draft[field] === was[field] || draft[field] === AS_IN_TEMPLATE ? is[field] : draft[field];
  return {
    template: next ? { id: next.meta.id, name: next.meta.name } : null,
    environment: at("environment"),
    compute: at("compute"),
    command: at("command"),
    arguments: at("arguments"),
  };
}

/** Fields that the form has. */
const SHOWN = new Set(["image", "command", "args", "compute", "assets"]);

/** The other fields of a template, as texts by name. */
export function restOf({ spec }: TemplateRow): [name: string, text: string][] {
  const { environment: _environment, compute: _compute, ...assets } = spec.assets ?? {};
  const others = Object.entries(spec).filter(([name]) => !SHOWN.has(name));
  return [...others, ...Object.entries(assets)].map(([name, value]) => [name, print(value)]);
}

function print(value: unknown): string {
  if (Array.isArray(value)) return value.map(print).join(", ");
  if (typeof value !== "object" || value === null) return String(value);
  const { name, value: text, ...more } = value as Record<string, unknown>;
  const isPair = typeof name === "string" && typeof text === "string";
  return isPair && Object.keys(more).length === 0 ? `${name}=${text}` : JSON.stringify(value);
}
