// Dialogs, sheets at the side, and the question before something is lost.
import { useState } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";

import { Button } from "./Button";
import css from "./dialog.module.css";
import { Failure } from "./States";

interface Props {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  /** At the side and of full height, over a form that stays visible. */
  isSheet?: boolean;
  role?: "dialog" | "alertdialog";
  children: React.ReactNode;
}

export function Dialog({
  title,
  isOpen,
  onClose,
  isSheet,
  role,
  children,
}: Props): React.ReactNode {
  return (
    <ModalOverlay
      isOpen={isOpen}
      onOpenChange={(open) => !open && onClose()}
      isDismissable={!isSheet}
      className={`${css.overlay} ${isSheet ? css.sheetOverlay : ""}`}
    >
      <Modal className={(isSheet ? css.sheet : css.dialog) ?? ""}>
        <AriaDialog className={css.body ?? ""} role={role ?? "dialog"}>
          <div className={css.title}>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            {!isSheet && role !== "alertdialog" && (
              <Button kind="plain" aria-label="Close" onPress={onClose}>
                ✕
              </Button>
            )}
          </div>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** The buttons at the end of a form; in a sheet they stay at its bottom edge. */
export function Actions(props: { isPage?: boolean; children: React.ReactNode }): React.ReactNode {
  return <div className={`${css.actions} ${props.isPage ? css.ofPage : ""}`}>{props.children}</div>;
}

interface ConfirmProps {
  title: string;
  /** Description of the loss. */
  children: React.ReactNode;
  action: string;
  onClose: () => void;
  onConfirm: () => Promise<unknown>;
}

/** Asks for confirmation before a loss. Errors of the action are shown in it. */
export function Confirm(props: ConfirmProps): React.ReactNode {
  const [error, setError] = useState<Error>();
  const [pending, setPending] = useState(false);
  const confirm = () => {
    setPending(true);
    props.onConfirm().then(props.onClose, (failure: Error) => {
      setPending(false);
      setError(failure);
    });
  };
  return (
    <Dialog title={props.title} isOpen onClose={props.onClose} role="alertdialog">
      <div>{props.children}</div>
      {error && <Failure error={error} />}
      <Actions>
        <Button onPress={props.onClose}>CANCEL</Button>
        <Button kind="danger" autoFocus isPending={pending} onPress={confirm}>
          {props.action}
        </Button>
      </Actions>
    </Dialog>
  );
}
