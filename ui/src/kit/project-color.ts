// The look of a project: one of 8 hues with one of 3 fills, the same on every page.
const HUES = 8;
const FILLS = ["solid", "hatched", "dotted"] as const;
/** Looks that stay apart. */
export const LOOKS = HUES * FILLS.length;

/** Looks of the projects that must not be alike, by their ids. */
export type Looks = ReadonlyMap<string, number>;

/** FNV-1a with a last mix: ids that follow each other are spread over all looks. */
function hash(id: string): number {
  let sum = 0x81_1c_9d_c5;
  for (let at = 0; at < id.length; at += 1) {
    sum = Math.imul(sum ^ id.charCodeAt(at), 0x01_00_01_93);
  }
  sum = Math.imul(sum ^ (sum >>> 16), 0x85_eb_ca_6b);
  return (sum ^ (sum >>> 13)) >>> 0;
}

/** The look that a project has if no other one took it: a solid one. */
const preferred = (id: string) => hash(id) % HUES;

/**
 * Gives each of the first projects a look of its own, the older ones first, so that a new project
 * changes none. Fills are used when no hue is left.
 */
export function looksOf(ids: string[]): Looks {
  const looks = new Map<string, number>();
  const taken = new Set<number>();
  for (const id of ids.slice(0, LOOKS)) {
    const first = preferred(id);
    for (let next = 0; next < LOOKS; next += 1) {
      const look = ((first + next) % HUES) + HUES * Math.floor(next / HUES);
      if (taken.has(look)) continue;
      taken.add(look);
      looks.set(id, look);
      break;
    }
  }
  return looks;
}

/** Of a project beyond those, a look by its id alone. */
function lookOf(looks: Looks, id: string): number {
  return looks.get(id) ?? hash(id) % LOOKS;
}

/** The hue of a project, for texts and bars that have fills of their own. */
export function projectColor(looks: Looks, id: string): string {
  return `var(--p${lookOf(looks, id) % HUES})`;
}

/** What the area of a project is filled with, as a background. */
export function projectFill(looks: Looks, id: string): string {
  const color = projectColor(looks, id);
  const gap = "color-mix(in srgb, var(--bg) 75%, transparent)";
  switch (FILLS[Math.floor(lookOf(looks, id) / HUES)]) {
    case "hatched":
      return `repeating-linear-gradient(45deg, ${color} 0 3px, ${gap} 3px 5px), ${color}`;
    case "dotted":
      return `radial-gradient(circle, ${gap} 0 1.3px, transparent 1.6px) 0 0 / 5px 5px, ${color}`;
    default:
      return color;
  }
}
