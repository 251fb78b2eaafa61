// grafana/bursar.json against the types that Grafana publishes for dashboards, panels and queries.
//
// Why: no Grafana can be had here to import it. A misspelt key or a value outside its set would be ignored there,
// without a word. Promise: each panel's options, field options and targets are checked by the types of its kind of
// panel and of the Prometheus data source; a key that the types do not have is an error.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const raw = "@grafana/schema/dist/esm/raw";
const dashboard = JSON.parse(readFileSync(join(here, "../../grafana/bursar.json"), "utf8"));

// What is not `Dashboard`'s own: the options of a kind of panel, and the query of a data source.
const kinds = {
  timeseries: ["timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen", "Options", "FieldConfig"],
  stat: ["stat/panelcfg/x/StatPanelCfg_types.gen", "Options", null],
};

const lines = [
  `import type { Dashboard, Panel, RowPanel, VariableModel } from "${raw}/dashboard/x/Dashboard_types.gen";`,
  `import type { DataQuery } from "@grafana/schema";`,
  // The data source's own part is in no package that stands alone.
  "interface PrometheusQuery extends DataQuery { expr: string; legendFormat: string; instant: boolean; range: boolean }",
];
for (const [kind, [file, options, field]] of Object.entries(kinds)) {
  lines.push(`import type * as ${kind} from "${raw}/composable/${file}";`);
  lines.push(`type ${kind}Options = ${kind}.${options};`);
  lines.push(`type ${kind}Field = ${field ? `${kind}.${field}` : "Record<string, never>"};`);
}
const say = (name, type, value) => lines.push(`export const ${name}: ${type} = ${JSON.stringify(value, null, 2)};`);

const { panels, templating, ...rest } = dashboard;
say("top", "Values<Dashboard>", rest);
templating.list.forEach((variable, at) => say(`variable${at}`, "Values<VariableModel>", variable));
for (const panel of panels) {
  if (panel.type === "row") {
    say(`row${panel.id}`, "Values<RowPanel>", panel);
    continue;
  }
  if (!kinds[panel.type]) throw new Error(`panel ${panel.title}: no types for ${panel.type}`);
  const { options, targets, fieldConfig, ...common } = panel;
  const { custom, ...defaults } = fieldConfig.defaults;
  say(`panel${panel.id}`, "Values<Panel>", { ...common, fieldConfig: { ...fieldConfig, defaults } });
  say(`options${panel.id}`, `Values<${panel.type}Options>`, options);
  say(`custom${panel.id}`, `Values<${panel.type}Field>`, custom);
  targets.forEach((target, at) => say(`query${panel.id}_${at}`, "Values<PrometheusQuery>", target));
}
// An enum of the types stands in JSON as its value.
lines.push(`type Values<T> = T extends string ? T | \`\${T}\` : T extends number
  ? T | (\`\${T}\` extends \`\${infer N extends number}\` ? N : never)
  : T extends (infer E)[] ? Values<E>[] : T extends object ? { [K in keyof T]: Values<T[K]> } : T;`);

const folder = mkdtempSync(join(here, ".check-"));
try {
  writeFileSync(join(folder, "dashboard.ts"), lines.join("\n"));
  const tsc = join(here, "node_modules/typescript/bin/tsc");
  const flags = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext", "--target", "es2022"];
  execFileSync(process.execPath, [tsc, ...flags, join(folder, "dashboard.ts")], { stdio: "inherit", cwd: here });
  console.log(`${panels.length} panels and rows, ${templating.list.length} variables: no error`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
