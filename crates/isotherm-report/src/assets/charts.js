"use strict";
// Draws the figures of a page: the one place that knows the chart library. Figures say what is shown; colours come from the
// style sheet, so that light, dark and print follow it; everything is drawn again when one of them changes.
(() => {
  const NARROW_PX = 560;
  const SYMBOLS = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect", "emptyTriangle", "emptyDiamond"];
  const DASHES = ["solid", "dashed", "dotted"];
  const SLOTS = 8;
  // Sizes of letters: of names, and of what stands beside axes and lines.
  const NAME_PX = 12;
  const LABEL_PX = 11;

  const escapeHtml = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    return {
      paper: colour("paper"), raised: colour("raised"), ink: colour("ink"), soft: colour("soft"), line: colour("line"),
      slots: Array.from({ length: SLOTS }, (_, i) => colour(`s${i}`)),
      heat: [0, 1, 2, 3].map((i) => colour(`heat${i}`)),
      font: style.fontFamily,
    };
  };

  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
  const tick = (value) => {
    if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(0);
    return Math.abs(value) >= 1e6 ? compact.format(value) : groupDigits(String(Number(value.toPrecision(10))));
  };

  /** How a series looks: its colour goes round the palette, and a second round is dashed. */
  const look = (series, paint) => ({
    colour: paint.slots[series.slot % SLOTS],
    dash: series.origin === "theory" ? "dotted" : DASHES[Math.floor(series.slot / SLOTS) % DASHES.length],
    symbol: SYMBOLS[series.slot % SYMBOLS.length],
    published: series.origin === "published",
  });

  const axisOption = (axis, paint, { ticks, ...extra }) => ({
    type: axis.scale === "logarithmic" ? "log" : "value",
    name: axisTitle(axis),
    nameTextStyle: { color: paint.soft, fontSize: NAME_PX },
    axisLabel: { color: paint.soft, fontSize: 11, formatter: tick, hideOverlap: true, customValues: ticks },
    axisLine: { show: true, lineStyle: { color: paint.line } },
    // Lines across the chart stand at these too.
    axisTick: { show: false, customValues: ticks },
    splitLine: { lineStyle: { color: paint.line, opacity: 0.6 } },
    ...extra,
  });

  /** The step of round numbers that parts `span` into about `wanted` pieces. */
  const roundStep = (span, wanted) => {
    const power = 10 ** Math.floor(Math.log10(span / wanted));
    return [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= (span / wanted) * (1 - 1e-9));
  };

  const clean = (n) => Number(n.toPrecision(12));

  /** The multiples of `step` from `min` to `max`. */
  const multiples = (step, min, max) => {
    const [first, last] = [Math.ceil(min / step - 1e-9), Math.floor(max / step + 1e-9)];
    return Array.from({ length: last - first + 1 }, (_, i) => clean((first + i) * step));
  };

  /** Powers of ten from `min` to `max`, with twos and fives where those are few. */
  const powers = (min, max) => {
    const exponents = multiples(1, Math.floor(Math.log10(min)), Math.log10(max));
    const within = (digits) => exponents.flatMap((e) => digits.map((d) => clean(d * 10 ** e))).filter((n) => n >= min && n <= max);
    const tens = within([1]);
    return tens.length > 2 ? tens : within([1, 2, 5]);
  };

  /** Ends and round ticks of what the report says is to be shown; `tight` ends the axis there, as what lies along it wants it, otherwise ends are round. */
  const rangeOption = (axis, range, wanted, tight = false) => {
    const [least, most] = range ?? [0, 1];
    if (axis.scale === "logarithmic") {
      const [floor, ceiling] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
      const [min, max] = tight && most > least ? [least, most] : [10 ** floor, 10 ** Math.max(ceiling, floor + 1)];
      return { min, max, ticks: powers(min, max) };
    }
    const step = roundStep(most > least ? most - least : Math.abs(most) || 1, wanted);
    const [floor, ceiling] = [Math.floor(least / step + 1e-9) * step, Math.ceil(most / step - 1e-9) * step];
    // A hair beyond the last number: the sum of a stack is added up in another order, and would be cut off.
    const [min, max] = tight && most > least ? [least, most + (most - least) * 1e-9] : [floor, ceiling > floor ? ceiling : floor + step].map(clean);
    return { min, max, ticks: multiples(step, min, max) };
  };

  const below = { nameLocation: "middle", nameGap: 28 };
  // The name of an upright axis lies level above it: nobody turns the head, and no width is lost on a phone.
  const above = (paint, left) => ({ nameLocation: "end", nameGap: 12, nameTextStyle: { color: paint.soft, fontSize: 12, align: "left", padding: [0, 0, 0, 8 - left] } });

  const tooltip = (paint, formatter, extra) => ({
    confine: true,
    backgroundColor: paint.raised, borderColor: paint.line, textStyle: { color: paint.ink, fontSize: 13 },
    extraCssText: "max-width: 22rem; white-space: normal;",
    formatter,
    ...extra,
  });

  const tooltipRows = (title, rows) => {
    const line = ([marker, name, value]) => `<div>${marker ?? ""}${escapeHtml(name)}: <b>${escapeHtml(value)}</b></div>`;
    return `<div>${escapeHtml(title)}</div>${rows.map(line).join("")}`;
  };

  const LABEL_LINE_PX = 14;
  const pen = document.createElement("canvas").getContext("2d");
  const textWidth = (text, px, paint) => {
    pen.font = `${px}px ${paint.font}`;
    return pen.measureText(text).width;
  };

  const meet = (a, b) => a.x[0] < b.x[1] && b.x[0] < a.x[1] && a.y[0] < b.y[1] && b.y[0] < a.y[1];

  /** What is left of a stretch without those that are taken. */
  const without = ([from, to], taken) => {
    const pieces = [];
    let start = from;
    for (const [low, high] of [...taken].sort((a, b) => a[0] - b[0])) {
      if (low > start) pieces.push([start, Math.min(low, to)]);
      start = Math.max(start, high);
    }
    if (start < to) pieces.push([start, to]);
    return pieces.filter(([low, high]) => high > low && low < to);
  };

  /** Labels of upright lines at `places`: each a flag beside the top of its line, in the lowest row in which it meets no other flag and no line to one above it. */
  const flags = (rules, places, width, paint) => {
    const put = [];
    const fromRight = rules.map((rule, i) => ({ name: rule.label, at: places[i] })).sort((a, b) => b.at - a.at);
    for (const flag of fromRight) {
      const long = textWidth(flag.name, LABEL_PX, paint) + 6;
      const isLeft = flag.at + long > width;
      const x = isLeft ? [flag.at - long, flag.at] : [flag.at, flag.at + long];
      const blocks = (other, row) => (other.row === row && other.x[0] < x[1] && x[0] < other.x[1]) || (other.row > row && x[0] < other.at && other.at < x[1]);
      let row = 0;
      while (put.some((other) => blocks(other, row))) row += 1;
      put.push({ ...flag, isLeft, x, row });
    }
    return put;
  };

  /** Labels of level lines at `places`: each on its line, as far to the right as it meets no other, and higher where there is no room. */
  const ridges = (rules, places, [left, right], paint) => {
    const taken = [];
    return rules.map((rule, i) => {
      const long = textWidth(rule.label, LABEL_PX, paint) + 6;
      const box = { x: [right - long, right], y: [places[i] - LABEL_LINE_PX, places[i] - 1] };
      for (let other = taken.find((t) => meet(t, box)); other; other = taken.find((t) => meet(t, box))) {
        box.x = [other.x[0] - long, other.x[0]];
        if (box.x[0] < left) Object.assign(box, { x: [right - long, right], y: box.y.map((y) => y - LABEL_LINE_PX) });
      }
      taken.push(box);
      return { name: rule.label, at: places[i], ...box };
    });
  };

  /** Lines in pieces, in pixels; the label stands at the first end of each first piece. */
  const markLine = (lines, paint, lineStyle = { color: paint.soft, type: "dashed", width: 1 }) => ({
    silent: true, symbol: "none", animation: false, z: 2,
    lineStyle,
    label: { show: false, color: paint.soft, fontSize: LABEL_PX, formatter: ({ name }) => name, position: "start", distance: 0, textBorderColor: paint.paper, textBorderWidth: 3 },
    data: lines.flatMap(({ name, pieces, label }) => pieces.map(([from, to], i) => [{ name, x: from[0], y: from[1], label: i === 0 ? { show: true, ...label } : {} }, { x: to[0], y: to[1] }])),
  });

  /** A level interval with its ends, for `markLine`. */
  const whisker = (low, high, y) => ({ name: "", pieces: [[[low, y], [high, y]], ...[low, high].map((end) => [[end, y - 4], [end, y + 4]])] });

  /** How much of its colour something keeps whose run is not valid. */
  const PALE = 0.4;
  const isPale = (series, i) => series.invalid?.[i] === true;

  const frame = (paint) => ({
    animation: false,
    backgroundColor: "transparent",
    textStyle: { fontFamily: paint.font, color: paint.ink },
  });

  const NAMES_PX = 190;
  const NAME_LINE_PX = 14;

  /** A name in lines of at most `room`; besides blanks, what parts names of policies and traces ends a word, and a word that is too long is cut. */
  const linesOf = (name, room, paint) => {
    const fits = (line) => textWidth(line.trimEnd(), NAME_PX, paint) <= room;
    const lines = [""];
    for (const word of name.split(/(?<=[ ,_-])/)) {
      for (const part of fits(word) ? [word] : word) {
        if (lines.at(-1) === "" || fits(lines.at(-1) + part)) lines[lines.length - 1] += part;
        else lines.push(part);
      }
    }
    return lines.map((line) => line.trim());
  };

  /** Whether the names of the categories have no room left of their bars, and stand above them. */
  const namesAbove = (chart, width, paint) => width < NARROW_PX || chart.categories.some((name) => textWidth(name, NAME_PX, paint) > NAMES_PX);

  /** The names in lines, where they have this room. */
  const layNames = (chart, above, room, paint) => {
    const lines = chart.categories.map((name) => (above ? linesOf(name, room, paint) : [name]));
    return { above, room, lines, most: Math.max(1, ...lines.map((own) => own.length)) };
  };

  const barHeight = (chart) => (chart.stacked ? 20 : Math.max(10, 20 - 2 * chart.series.length));
  const groupHeight = (chart) => (chart.stacked ? 20 : chart.series.length * barHeight(chart) * 1.15);
  const bandHeight = (chart, names) => groupHeight(chart) + (names.above ? 26 + NAME_LINE_PX * names.most : 16);
  const FOOT_PX = 46;

  const categoryLabel = (chart, paint, names) => {
    const text = { formatter: (_, i) => names.lines[i].join("\n"), lineHeight: NAME_LINE_PX, overflow: "truncate" };
    // Lines of the plane pass behind the letters.
    const common = { color: paint.ink, fontSize: NAME_PX, interval: 0, textBorderColor: paint.paper, textBorderWidth: 3, ...text };
    if (!names.above) return { ...common, width: names.room };
    return { ...common, inside: true, align: "left", verticalAlign: "bottom", margin: 0, padding: [0, 0, groupHeight(chart) / 2 + 7, 0], width: names.room };
  };

  /** Where the parts of a chart of bars lie, in pixels, and its axis. */
  const layBars = (chart, width, ranges, paint) => {
    const above = namesAbove(chart, width, paint);
    const totals = chart.categories.map((_, i) => chart.series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0));
    const shown = chart.stacked ? totals.map((total, i) => formatWithHalf(total, chart.intervals?.[i])) : chart.series.flatMap((s) => s.values.map(formatNumber));
    // The number at the end of the longest bar stands beside the plane.
    const longest = Math.max(0, ...shown.map((text) => textWidth(text, NAME_PX, paint)));
    const right = width - Math.max(48, longest + 14);
    // The name of the axis stands in the middle below the plane, and must not be cut off.
    const left = Math.max(above ? 8 : NAMES_PX + 8, textWidth(axisTitle(chart.value), NAME_PX, paint) + 8 - right);
    const names = layNames(chart, above, above ? width - left - 16 : NAMES_PX, paint);
    const axis = rangeOption(chart.value, ranges.x, width < NARROW_PX ? 4 : 8, true);
    const at = (value) => left + ((value - axis.min) / (axis.max - axis.min)) * (right - left);
    const marks = flags(chart.rules, chart.rules.map((rule) => at(rule.value)), width, paint);
    const rows = Math.max(0, ...marks.map((mark) => mark.row + 1));
    const [flagged, band] = [6 + rows * LABEL_LINE_PX, bandHeight(chart, names)];
    // A name of several lines reaches into the gap below the bars before, which the first one does not have.
    const top = flagged + (names.above ? (NAME_LINE_PX / 2) * ((names.lines[0]?.length ?? 1) - 1) : 0);
    return { left, right, axis, at, marks, names, band, flagged, top, bottom: top + band * chart.categories.length };
  };

  /** The texts that lie in the plane: names above their bars, and the numbers at the ends of bars. */
  const textsOfBars = (chart, shown, numbers, { left, flagged, top, band, names }, paint) => {
    const height = barHeight(chart);
    return chart.categories.flatMap((_, i) => {
      const middle = top + (i + 0.5) * band;
      const gap = band - groupHeight(chart);
      const end = middle - groupHeight(chart) / 2;
      // From the bars before: a line that begins again for a moment would look as if it went through the name.
      const long = Math.max(...names.lines[i].map((line) => textWidth(line, NAME_PX, paint)));
      const name = names.above ? [{ x: [left, left + long + 4], y: [Math.max(flagged, end - gap + 3), end - 3] }] : [];
      const first = chart.stacked ? middle : middle - ((shown.length - 1) * 1.15 * height) / 2;
      const number = ({ end, text }, bar) => ({ x: [end, end + textWidth(text, NAME_PX, paint) + 8], y: [first + (bar * 1.15 - 0.5) * height, first + (bar * 1.15 + 0.5) * height] });
      return [...name, ...numbers(i).flatMap((found, bar) => (found === null ? [] : [number(found, bar)]))];
    });
  };

  /** Bars of a group, at most, that have their numbers beside them. */
  const MOST_NUMBERED = 4;

  /** Bars lie level, so that names can be read without turning the head. */
  const bars = (chart, paint, width, hidden, ranges) => {
    const shown = chart.series.filter((s) => !hidden.has(s.name));
    const height = barHeight(chart);
    const series = shown.map((s) => {
      const { colour, published } = look(s, paint);
      return {
        type: "bar", name: s.name, barWidth: height, barGap: "15%",
        // A second round of the palette is told from the first by its frame.
        data: s.values.map((value, i) => ({ value, itemStyle: { opacity: isPale(s, i) ? PALE : 1 } })),
        stack: chart.stacked ? "whole" : undefined,
        itemStyle: published ? { color: "transparent", borderColor: colour, borderWidth: 1.5, borderType: [4, 2] } : { color: colour, borderColor: s.slot >= SLOTS ? paint.ink : paint.paper, borderWidth: s.slot >= SLOTS ? 1.5 : chart.stacked ? 0.5 : 0, borderType: DASHES[Math.floor(s.slot / SLOTS) % DASHES.length] },
        label: chart.stacked ? undefined : { show: shown.length <= MOST_NUMBERED, position: "right", color: paint.soft, fontSize: LABEL_PX, formatter: ({ value }) => formatNumber(value) },
      };
    });
    const total = (i) => shown.reduce((sum, s) => sum + (s.values[i] ?? 0), 0);
    // An interval is that of the whole stack.
    const half = (i) => (shown.length === chart.series.length ? chart.intervals?.[i] ?? null : null);
    const place = layBars(chart, width, ranges, paint);
    const endOf = (i) => place.at(total(i) + (half(i) ?? 0));
    if (chart.stacked) {
      // A series without width carries the interval around the end of each stack, and the sum beside it.
      const label = { show: true, position: "right", color: paint.ink, fontSize: NAME_PX, formatter: ({ dataIndex }) => formatWithHalf(total(dataIndex), half(dataIndex)) };
      const data = chart.categories.map((_, i) => ({ value: 0, label: { offset: [endOf(i) - place.at(total(i)), 0] } }));
      const whiskers = chart.categories.flatMap((_, i) => (half(i) === null ? [] : [whisker(place.at(total(i) - half(i)), endOf(i), place.top + (i + 0.5) * place.band)]));
      // In the colour of the paper around, so that it can be seen on the bar.
      const [around, errors] = [[paint.paper, 3.5], [paint.ink, 1.25]].map(([color, width]) => ({ ...markLine(whiskers, paint, { color, type: "solid", width }), z: 4 }));
      const carrier = { type: "bar", name: "", stack: "whole", barWidth: height, tooltip: { show: false } };
      const empty = chart.categories.map(() => 0);
      series.push({ ...carrier, data: empty, markLine: around }, { ...carrier, data, label, markLine: errors });
    }
    const plain = (value) => (value === null ? null : { end: place.at(value), text: formatNumber(value) });
    const numbers = (i) => (chart.stacked ? [{ end: endOf(i), text: formatWithHalf(total(i), half(i)) }] : shown.length <= MOST_NUMBERED ? shown.map((s) => plain(s.values[i])) : []);
    const rowTop = (row) => place.flagged - (row + 1) * LABEL_LINE_PX;
    const labels = place.marks.map(({ x, row }) => ({ x, y: [rowTop(row) - 3, rowTop(row - 1)] }));
    const texts = [...labels, ...textsOfBars(chart, shown, numbers, place, paint)];
    const lines = place.marks.map(({ name, at, row, isLeft }) => {
      const crossed = texts.filter(({ x }) => x[0] < at && at < x[1]).map(({ y }) => y);
      const pieces = without([rowTop(row), place.bottom], crossed).map((piece) => piece.map((y) => [at, y]));
      return { name, pieces, label: { align: isLeft ? "right" : "left", verticalAlign: "top", padding: [0, 3] } };
    });
    if (shown.length > 0) series[0].markLine = markLine(lines, paint);
    return {
      ...frame(paint),
      grid: { left: place.left, right: width - place.right, top: place.top, bottom: FOOT_PX, outerBoundsMode: "none" },
      xAxis: axisOption(chart.value, paint, { ...below, ...place.axis }),
      yAxis: {
        type: "category", inverse: true, data: chart.categories,
        axisLabel: categoryLabel(chart, paint, place.names), z: 3,
        axisLine: { lineStyle: { color: paint.line } }, axisTick: { show: false },
      },
      series,
      tooltip: tooltip(paint, (items) => {
        const rows = items.filter((i) => i.seriesName && i.value).map((i) => [i.marker, i.seriesName, formatNumber(i.value)]);
        if (chart.stacked) rows.push(["", "total", formatWithHalf(total(items[0].dataIndex), half(items[0].dataIndex))]);
        return tooltipRows(items[0].name, rows);
      }, { trigger: "axis", axisPointer: { type: "shadow" } }),
    };
  };

  const barsHeight = (chart, width, ranges) => layBars(chart, width, ranges, theme()).bottom + FOOT_PX;

  const planeHeight = (chart, width) => Math.min(340, Math.max(230, width * 0.5));

  const plane = (chart, paint, width, hidden, ranges) => {
    const left = 52;
    const shown = chart.series.filter((s) => !hidden.has(s.name));
    const series = shown.map((s) => {
      const { colour, dash, symbol, published } = look(s, paint);
      // Few runs show where they are; a formula is not known at its ends alone.
      const few = s.mark !== "steps" && s.points.length <= 24 && (s.origin !== "theory" || s.points.length === 1);
      const pale = s.invalid !== undefined && s.invalid.every(Boolean);
      const data = s.points.map((value, i) => ({ value, itemStyle: { opacity: isPale(s, i) ? PALE : 1 } }));
      const common = { name: s.name, data, symbol, symbolSize: 7, itemStyle: { color: colour } };
      if (s.mark === "points") {
        const hollow = { color: "transparent", borderColor: colour, borderWidth: 2 };
        return { ...common, type: "scatter", symbolSize: 11, itemStyle: published ? hollow : { color: colour } };
      }
      return {
        ...common, type: "line", showSymbol: few, step: s.mark === "steps" ? "start" : false,
        lineStyle: { color: colour, width: s.origin === "theory" ? 1.25 : 2, type: dash, opacity: pale ? PALE : 1 },
        emphasis: { focus: "series" },
      };
    });
    const upright = rangeOption(chart.y, ranges.y, 5);
    const [top, bottom] = [30, planeHeight(chart, width) - FOOT_PX];
    // The name of the level axis stands in the middle below the plane, and must not be cut off.
    const right = Math.min(width - 18, 2 * width - left - textWidth(axisTitle(chart.x), NAME_PX, paint) - 8);
    const along = (n) => (chart.y.scale === "logarithmic" ? Math.log(n) : n);
    const at = (n) => bottom - ((along(n) - along(upright.min)) / (along(upright.max) - along(upright.min))) * (bottom - top);
    const labels = ridges(chart.rules, chart.rules.map((rule) => at(rule.value)), [left, right], paint);
    const lines = labels.map((label) => {
      const crossed = labels.filter(({ y }) => y[0] < label.at && label.at < y[1]).map(({ x }) => x);
      const visible = without([left, right], crossed);
      // From the right, where its label stands.
      const pieces = (visible.length > 0 ? visible : [[left, right]]).reverse().map(([low, high]) => [[high, label.at], [low, label.at]]);
      const moved = [0, pieces[0][0][0] - label.x[1] + 3, label.at - label.y[1] + 1, 0];
      return { name: label.name, pieces, label: { align: "right", verticalAlign: "bottom", padding: moved } };
    });
    const errors = (s) => (s.intervals ?? []).flatMap((half, i) => {
      const [x, y] = s.points[i];
      const lineStyle = { color: look(s, paint).colour, type: "solid", width: 1.5 };
      return half === null || y === null ? [] : [[{ coord: [x, y - half], lineStyle }, { coord: [x, y + half] }]];
    });
    series.forEach((option, i) => {
      const ruled = markLine(i === 0 ? lines : [], paint);
      option.markLine = { ...ruled, data: [...ruled.data, ...errors(shown[i])] };
    });
    return {
      ...frame(paint),
      grid: { left, right: width - right, top, bottom: FOOT_PX, outerBoundsMode: "none" },
      xAxis: axisOption(chart.x, paint, { ...below, ...rangeOption(chart.x, ranges.x, 6, chart.series.some((s) => s.mark !== "points")) }),
      yAxis: axisOption(chart.y, paint, { ...above(paint, left), ...upright }),
      series,
      tooltip: tooltip(paint, (items) => {
        const list = Array.isArray(items) ? items : [items];
        const title = `${axisTitle(chart.x)}: ${formatNumber(list[0].value[0])}`;
        const half = ({ seriesName, dataIndex }) => shown.find((s) => s.name === seriesName)?.intervals?.[dataIndex];
        return tooltipRows(title, list.map((i) => [i.marker, i.seriesName, formatWithHalf(i.value[1], half(i))]));
      }, { trigger: chart.series.every((s) => s.mark === "points") ? "item" : "axis" }),
    };
  };

  const histogram = (chart, paint, width, hidden, ranges) => {
    const left = 46;
    const shown = chart.series.filter((s) => !hidden.has(s.name));
    const series = shown.map((s) => {
      const { colour, dash } = look(s, paint);
      // The outline rises at the first edge and falls at the last.
      const steps = s.values.map((v, i) => [s.edges[i], v]);
      const data = [[s.edges[0], 0], ...steps, [s.edges.at(-1), 0]];
      return {
        type: "line", name: s.name, data, step: "end", showSymbol: false, symbol: "none",
        lineStyle: { color: colour, width: 1.75, type: dash, opacity: s.invalid ? PALE : 1 }, itemStyle: { color: colour },
        areaStyle: { color: colour, opacity: shown.length === 1 ? 0.28 : 0.09 },
        emphasis: { focus: "series" },
      };
    });
    const at = (s, x) => {
      const i = s.edges.findIndex((edge, k) => x >= edge && (x < s.edges[k + 1] || k === s.edges.length - 2));
      return i < 0 || i >= s.values.length ? null : [s.edges[i], s.edges[i + 1], s.values[i]];
    };
    return {
      ...frame(paint),
      grid: { left, right: 18, top: 30, bottom: 46 },
      xAxis: axisOption(chart.x, paint, { ...below, ...rangeOption(chart.x, ranges.x, 6, true) }),
      yAxis: axisOption(chart.y, paint, { ...above(paint, left), ...rangeOption(chart.y, ranges.y, 5) }),
      series,
      tooltip: tooltip(paint, (items) => {
        const x = items[0].value[0];
        const rows = items.flatMap((item) => {
          const series = shown.find((s) => s.name === item.seriesName);
          const found = series && at(series, x);
          return found ? [[item.marker, `${item.seriesName}, ${formatNumber(found[0])} \u2013 ${formatNumber(found[1])}`, formatNumber(found[2])]] : [];
        });
        return tooltipRows(axisTitle(chart.x), rows);
      }, { trigger: "axis" }),
    };
  };

  /** Positions of round numbers along `count` cells, as a map from cell to text. */
  const roundTicks = ([start, step], count, wanted) => {
    const nice = roundStep(step * count, wanted);
    const ticks = new Map();
    for (let value = Math.ceil(start / nice) * nice; value < start + step * count; value += nice) {
      ticks.set(Math.min(count - 1, Math.round((value - start) / step)), tick(Number(value.toPrecision(6))));
    }
    return ticks;
  };

  const gridAxis = (axis, edges, count, paint, wanted, extra) => {
    const ticks = roundTicks(edges, count, wanted);
    return {
      ...axisOption(axis, paint, extra),
      type: "category", data: Array.from({ length: count }, (_, i) => i), splitLine: { show: false },
      axisLabel: { color: paint.soft, fontSize: 11, interval: (i) => ticks.has(i), formatter: (i) => ticks.get(Number(i)) ?? "" },
    };
  };

  const heatMap = (chart, paint, width) => {
    const left = 46;
    const [rows, columns] = [chart.rows.length, chart.rows[0].length];
    const cells = chart.rows.flatMap((row, y) => row.flatMap((n, x) => (n > 0 ? [[x, y, Math.log10(n), n]] : [])));
    const counts = cells.map((cell) => cell[3]);
    const [least, most] = counts.reduce(([a, b], n) => [Math.min(a, n), Math.max(b, n)], [Infinity, 1]);
    const range = (edges, i) => `${formatNumber(edges[0] + i * edges[1])} \u2013 ${formatNumber(edges[0] + (i + 1) * edges[1])}`;
    return {
      ...frame(paint),
      grid: { left, right: 18, top: 56, bottom: 46 },
      xAxis: gridAxis(chart.x, chart.x_start_step, columns, paint, width < NARROW_PX ? 4 : 8, below),
      yAxis: gridAxis(chart.y, chart.y_start_step, rows, paint, 5, above(paint, left)),
      visualMap: {
        type: "continuous", dimension: 2, min: Math.log10(least), max: Math.max(Math.log10(most), Math.log10(least) + 0.01),
        inRange: { color: paint.heat }, orient: "horizontal", right: 18, top: 0, itemWidth: 10, itemHeight: 110, padding: 0,
        text: [formatNumber(most), `${axisTitle(chart.value)}: ${formatNumber(least)}`], textStyle: { color: paint.soft, fontSize: 11 },
        hoverLink: false,
      },
      series: [{ type: "heatmap", data: cells, emphasis: { itemStyle: { borderColor: paint.ink, borderWidth: 1 } } }],
      tooltip: tooltip(paint, ({ value }) => tooltipRows("", [
        ["", axisTitle(chart.x), range(chart.x_start_step, value[0])],
        ["", axisTitle(chart.y), range(chart.y_start_step, value[1])],
        ["", axisTitle(chart.value), formatNumber(value[3])],
      ])),
    };
  };

  const kinds = {
    bars: [bars, barsHeight],
    plane: [plane, planeHeight],
    histogram: [histogram, planeHeight],
    heat_map: [heatMap, (chart, width) => Math.min(420, Math.max(280, width * 0.55))],
  };

  const drawn = [];

  const draw = (item) => {
    const width = item.element.clientWidth;
    const [option, height] = kinds[item.chart.kind];
    item.instance.resize({ width, height: height(item.chart, width, item.ranges) });
    item.instance.setOption(option(item.chart, theme(), width, item.hidden, item.ranges), { notMerge: true });
  };

  const drawAll = () => drawn.forEach(draw);

  /** The sign of a series in the legend, drawn as the chart draws it. */
  const swatch = (series, chart) => {
    const slot = `var(--s${series.slot % SLOTS})`;
    const { dash, published } = look(series, { slots: [] });
    const dashes = { solid: "none", dashed: "5 3", dotted: "2 2" }[dash];
    const line = chart.kind === "plane" && series.mark !== "points";
    const shape = line
      ? `<line x1="0" y1="7" x2="20" y2="7" stroke="${slot}" stroke-width="2.5" stroke-dasharray="${dashes}"/>`
      : `<rect x="3" y="1" width="12" height="12" rx="2" fill="${published ? "none" : slot}" stroke="${!published && series.slot >= SLOTS ? "var(--ink)" : slot}" stroke-width="2"${published ? ' stroke-dasharray="3 2"' : ""}/>`;
    return `<svg width="20" height="14" aria-hidden="true">${shape}</svg>`;
  };

  /** One legend for all panels of a figure; pressing a name hides or shows its series in each of them. */
  const legend = (place, figure, hidden, redraw) => {
    const seen = new Map();
    for (const { chart } of figure.panels) for (const s of chart.series ?? []) if (!seen.has(s.name)) seen.set(s.name, [s, chart]);
    if (seen.size < 2) return;
    for (const [name, [series, chart]] of seen) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.innerHTML = swatch(series, chart);
      button.append(document.createTextNode(name));
      button.addEventListener("click", () => {
        const hide = !hidden.delete(name);
        if (hide) hidden.add(name);
        button.setAttribute("aria-pressed", String(!hide));
        redraw();
      });
      place.append(button);
    }
  };

  for (const element of document.querySelectorAll("figure[data-figure]")) {
    const figure = figures[Number(element.dataset.figure)];
    const hidden = new Set();
    const own = [...element.querySelectorAll(".chart")].map((place) => {
      const panel = Number(place.dataset.panel);
      const [chart, ranges] = [figure.panels[panel].chart, figure.ranges[panel]];
      const size = { width: place.clientWidth || 300, height: 200 };
      return { element: place, chart, hidden, ranges, instance: echarts.init(place, null, { renderer: "svg", ...size }) };
    });
    legend(element.querySelector("[data-legend]"), figure, hidden, () => own.forEach(draw));
    drawn.push(...own);
  }
  drawAll();

  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // Paper is white whatever the screen is.
  addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); drawAll(); });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); drawAll(); });
})();
