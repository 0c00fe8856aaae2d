// Replacement of a page that failed, or one of whose files is missing.
import { Component } from "react";

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

/** True if a file of the interface is missing; the words are those of the browsers. */
function isMissingFile({ message }: Error): boolean {
  return /dynamically imported module|module script failed|preload CSS/iu.test(message);
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
    return (
      <Empty
        isPage
        title={isMissingFile(error) ? "A file of this page is missing" : "This page failed"}
      >
        <p className="muted" role="alert">
          {isMissingFile(error)
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
