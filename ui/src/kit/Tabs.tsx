// Tabs of a pane. A tab that is not chosen does not exist, and sends no requests.
import { Tab, TabList, TabPanel, Tabs as AriaTabs } from "react-aria-components";

import css from "./page.module.css";

export interface TabOf {
  id: string;
  name: string;
  content: React.ReactNode;
}

interface Props {
  label: string;
  tabs: TabOf[];
  value: string;
  onChange: (id: string) => void;
}

export function Tabs({ label, tabs, value, onChange }: Props): React.ReactNode {
  return (
    <AriaTabs
      className={css.tabs ?? ""}
      selectedKey={value}
      onSelectionChange={(key) => onChange(String(key))}
    >
      <TabList aria-label={label} className={css.tabList ?? ""}>
        {tabs.map(({ id, name }) => (
          <Tab key={id} id={id} className={css.tab ?? ""}>
            {name}
          </Tab>
        ))}
      </TabList>
      {tabs.map(({ id, content }) => (
        <TabPanel key={id} id={id} className={css.tabPanel ?? ""}>
          {content}
        </TabPanel>
      ))}
    </AriaTabs>
  );
}
