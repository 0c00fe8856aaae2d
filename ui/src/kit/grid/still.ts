// When the order of a grid is frozen.
import { useRef } from "react";

const STILL_MS = 1500;

/** The order is frozen while one reads: pointer over it, focus in it, or just scrolled. */
export function useStill(onFrozen: (frozen: boolean) => void) {
  const held = useRef(new Set<string>());
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const hold = (by: string) => {
    held.current.add(by);
    onFrozen(true);
    if (by !== "scroll") return;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => release("scroll"), STILL_MS);
  };
  const release = (by: string) => {
    held.current.delete(by);
    if (held.current.size === 0) onFrozen(false);
  };
  /** Lets the order follow once: what comes afterwards is counted again. */
  const thaw = () => {
    onFrozen(false);
    setTimeout(() => held.current.size > 0 && onFrozen(true));
  };
  return { hold, release, thaw };
}
