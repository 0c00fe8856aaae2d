// Replacement of a page that failed, or one of whose files is missing.
import { Component, lazy } from "react";

import { Button } from "./Button";
import { Empty } from "./States";

interface Props {
  /** A new place starts without the failure of the last one. */
  place: string;
  children: React.ReactNode;
}

interface State {
  place: string;
  error: Error | undefined;
}

/** A file of the interface cannot be had. */
export class MissingFile extends Error {}

/** A page whose files are fetched when it is first shown. */
export function page<Properties>(
  fetched: () => Promise<{ default: React.ComponentType<Properties> }>,
): React.LazyExoticComponent<React.ComponentType<Properties>> {
  return lazy(async () => {
    try {
      return await fetched();
    } catch (error) {
      throw new MissingFile(error instanceof Error ? error.message : String(error));
    }
  });
}

export class Boundary extends Component<Props, State> {
  override state: State = { place: this.props.place, error: undefined };

  static getDerivedStateFromError(thrown: unknown): Partial<State> {
    return { error: thrown instanceof Error ? thrown : new Error(String(thrown)) };
  }

  static getDerivedStateFromProps({ place }: Props, state: State): State | null {
    return place === state.place ? null : { place, error: undefined };
  }

  override render(): React.ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    const isMissing = error instanceof MissingFile;
    return (
      <Empty isPage title={isMissing ? "A file of this page is missing" : "This page failed"}>
        <p className="muted" role="alert">
          {isMissing
            ? "The server was not reached, or has another version of the page now. What you typed is kept."
            : error.message}
        </p>
        <Button kind="main" onPress={() => location.reload()}>
          Reload
        </Button>
      </Empty>
    );
  }
}
