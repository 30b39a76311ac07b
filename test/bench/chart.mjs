/** @import { Row } from './report.mjs' */

/**
 * A place of a row on the charts: throughput and p99 against how many operations are in flight, or against how many
 * leases are live.
 * @typedef {{ chart: 'in flight' | 'live leases', series: string, x: number, perSecond: number, p99: number }} Point
 */

/** @typedef {{ series: string, points: { x: number, y: number }[] }} Line */
/** @typedef {{ title: string, x: string, y: string, lines: Line[] }} Panel */

const WIDTH = 420;
const HEIGHT = 280;
const MARGIN = { left: 64, right: 16, top: 32, bottom: 44 };
/** Told apart by people who see few colours, and by the marks besides. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'];

/** The charts of a run as one SVG; null: no row that was measured has a place on them. @param {readonly Row[]} rows */
export function svgOf(rows) {
  const points = rows.flatMap(({ point }) => point ?? []);
  const panels = /** @type {const} */ (['in flight', 'live leases']).flatMap((chart) => panelsOf(points, chart));
  if (panels.length === 0) return null;
  const series = [...new Set(points.map((point) => point.series))];
  const height = HEIGHT * Math.ceil(panels.length / 2) + 28;
  const drawn = panels.map((panel, i) => drawPanel(panel, series, (i % 2) * WIDTH, Math.floor(i / 2) * HEIGHT));
  const key = series.map((name, i) => legend(name, i, height - 12));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${2 * WIDTH}" height="${height}" font-family="sans-serif" font-size="11">`,
    '<title>Throughput against what is in flight and against live leases, Writ beside its peers</title>',
    '<rect width="100%" height="100%" fill="#fff"/>',
    ...drawn,
    ...key,
    '</svg>\n',
  ].join('\n');
}

/** @param {readonly Point[]} points @param {Point['chart']} chart @returns {Panel[]} */
function panelsOf(points, chart) {
  const own = points.filter((point) => point.chart === chart);
  if (own.length === 0) return [];
  const lines = (/** @type {'perSecond' | 'p99'} */ value) =>
    [...new Set(own.map(({ series }) => series))].map((series) => ({
      series,
      points: own
        .filter((point) => point.series === series)
        .map((point) => ({ x: point.x, y: point[value] }))
        .sort((a, b) => a.x - b.x),
    }));
  return [
    { title: `acquire and release of 8, against ${chart}`, x: chart, y: 'cycles/s', lines: lines('perSecond') },
    { title: `p99, against ${chart}`, x: chart, y: 'ms', lines: lines('p99') },
  ];
}

/** @param {Panel} panel @param {readonly string[]} series @param {number} left @param {number} top */
function drawPanel({ title, x, y, lines }, series, left, top) {
  const all = lines.flatMap((line) => line.points);
  const across = logScale(
    all.map((point) => point.x),
    left + MARGIN.left,
    left + WIDTH - MARGIN.right,
  );
  const up = logScale(
    all.map((point) => point.y),
    top + HEIGHT - MARGIN.bottom,
    top + MARGIN.top,
  );
  const [bottom, edge] = [top + HEIGHT - MARGIN.bottom, left + MARGIN.left];
  return [
    text(left + WIDTH / 2, top + 18, title, 'middle', 'bold'),
    ...up.ticks.map(
      (tick) =>
        `<path d="M${edge} ${n(up.at(tick))}H${left + WIDTH - MARGIN.right}" stroke="#ddd"/>${text(edge - 6, up.at(tick) + 4, figure(tick), 'end')}`,
    ),
    ...[...new Set(all.map((point) => point.x))].map((tick) =>
      text(across.at(tick), bottom + 16, figure(tick), 'middle'),
    ),
    text(left + WIDTH / 2, bottom + 34, x, 'middle'),
    text(left + 8, top + MARGIN.top - 8, y, 'start'),
    `<path d="M${edge} ${top + MARGIN.top}V${bottom}H${left + WIDTH - MARGIN.right}" fill="none" stroke="#666"/>`,
    ...lines.map((line) => drawLine(line, series.indexOf(line.series), across, up)),
  ].join('\n');
}

/** @param {Line} line @param {number} index @param {Scale} across @param {Scale} up */
function drawLine({ points }, index, across, up) {
  const colour = COLOURS[index % COLOURS.length];
  const places = points.map((point) => `${n(across.at(point.x))} ${n(up.at(point.y))}`);
  const marks = places.map((place) => {
    const [cx, cy] = place.split(' ');
    return `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`;
  });
  return `<path d="M${places.join('L')}" fill="none" stroke="${colour}" stroke-width="2"/>${marks.join('')}`;
}

/** @param {string} name @param {number} index @param {number} y */
function legend(name, index, y) {
  const x = MARGIN.left + index * 150;
  return `<circle cx="${x}" cy="${y - 4}" r="4" fill="${COLOURS[index % COLOURS.length]}"/>${text(x + 10, y, name, 'start')}`;
}

/** @typedef {{ at: (value: number) => number, ticks: number[] }} Scale */

/** Powers of ten, from the one below all values to the one above. @param {number[]} values @param {number} from @param {number} to @returns {Scale} */
function logScale(values, from, to) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [first, last] = [
    Math.floor(Math.log10(low)),
    Math.max(Math.ceil(Math.log10(high)), Math.floor(Math.log10(low)) + 1),
  ];
  const at = (/** @type {number} */ value) => from + ((Math.log10(value) - first) / (last - first)) * (to - from);
  const ticks = [];
  for (let power = first; power <= last; power += 1) ticks.push(10 ** power);
  return { at, ticks };
}

/** @param {number} x @param {number} y @param {string} words @param {'start' | 'middle' | 'end'} anchor */
function text(x, y, words, anchor, weight = 'normal') {
  const escaped = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${n(x)}" y="${n(y)}" text-anchor="${anchor}" font-weight="${weight}">${escaped}</text>`;
}

const n = (/** @type {number} */ value) => Math.round(value * 10) / 10;
const figure = (/** @type {number} */ value) => value.toLocaleString('en-US', { maximumFractionDigits: 3 });
