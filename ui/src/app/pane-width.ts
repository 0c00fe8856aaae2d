// How much wider or narrower than at first the pane is; kept in this browser.
import { Stored } from "../api/stored";

const MORE_MAX = 400;
const stored = new Stored("elastane-pane-width");

/** Makes the pane wider by so many pixels, within what leaves room for the list and the tabs. */
export function widenPane(pixels: number): void {
  const before = Number(stored.text ?? 0) || 0;
  const more = Math.max(-MORE_MAX, Math.min(MORE_MAX, before + pixels));
  stored.text = more === 0 ? null : String(more);
  document.documentElement.style.setProperty("--pane-more", `${more}px`);
}
