// The parts of Apache ECharts that the reports draw with; everything else stays out of the bundle.
import { init, use } from "echarts/core";
import { BarChart, HeatmapChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, MarkLineComponent, TooltipComponent, VisualMapContinuousComponent } from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

use([
  BarChart,
  GridComponent,
  HeatmapChart,
  LineChart,
  MarkLineComponent,
  ScatterChart,
  SVGRenderer,
  TooltipComponent,
  VisualMapContinuousComponent,
]);

export { init };
