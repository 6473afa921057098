// Draws a Plotly figure and updates it in place: zoom survives a tick, colours follow the theme.
const SCRIPT = "highwater-plotly"

function load(source) {
  if (window.Plotly) return Promise.resolve(window.Plotly)
  let script = document.getElementById(SCRIPT)
  if (!script) {
    script = document.createElement("script")
    script.id = SCRIPT
    script.src = source
    document.head.append(script)
  }
  return new Promise((done, failed) => {
    script.addEventListener("load", () => done(window.Plotly))
    script.addEventListener("error", () => failed(new Error("Plotly could not be loaded")))
  })
}

function themed(layout, element) {
  const style = getComputedStyle(element)
  const colour = (name, fallback) => style.getPropertyValue(name).trim() || fallback
  const text = colour("--st-text-color", "#1D232B")
  const line = colour("--st-border-color", "#D9DEE4")
  const background = colour("--st-background-color", "#FFFFFF")
  const axis = (given) => ({
    gridcolor: line, linecolor: line, tickcolor: line, zerolinecolor: line, spikecolor: text, automargin: true,
    ...given, tickfont: { color: text, size: 12 }, title: { ...(given || {}).title, font: { color: text, size: 12 } },
  })
  return {
    ...layout,
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: text, family: colour("--st-font", "sans-serif"), size: 13 },
    hoverlabel: { bgcolor: background, bordercolor: line, font: { color: text, size: 12 }, align: "left" },
    legend: { ...layout.legend, font: { color: text, size: 12 }, bgcolor: "rgba(0,0,0,0)" },
    annotations: (layout.annotations || []).map((note) => ({ ...note, font: { color: text, ...note.font } })),
    ...Object.fromEntries(Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))
      .map((name) => [name, axis(layout[name])])),
  }
}

// What is dragged is the page's range where it has one; elsewhere it stays zoomed until a double click,
// since a moving range would undo it at every tick.
function watch(Plotly, plot) {
  if (plot.watched) return
  plot.watched = true
  plot.on("plotly_relayout", (change) => {
    if (!("xaxis.range[0]" in change)) return
    if (plot.wants.ranges) plot.tell("range", [change["xaxis.range[0]"], change["xaxis.range[1]"]])
    else plot.zoomed = true
  })
  plot.on("plotly_doubleclick", () => {
    plot.zoomed = false
    if (plot.wants.ranges) plot.tell("range", [])
    else Plotly.relayout(plot, { "xaxis.range": plot.home.slice() })
  })
  plot.on("plotly_click", (click) => {
    const point = click.points[0]
    if (plot.wants.points && point) plot.tell("point", [point.x, point.y])
  })
  plot.addEventListener("click", (click) => {
    const place = labelAt(plot, click)
    if (place !== null) plot.tell("point", ["", place])
  })
  plot.addEventListener("mousemove", (move) => {
    plot.style.cursor = labelAt(plot, move) === null ? "" : "pointer"
  })
}

// Names beside the plane stand for their row, which may have no point to click on.
function labelAt(plot, { clientX, clientY }) {
  if (!plot.wants.points) return null
  const { xaxis, yaxis } = plot._fullLayout
  const box = plot.getBoundingClientRect()
  const [x, y] = [clientX - box.left, clientY - box.top - yaxis._offset]
  const isBeside = x >= 0 && x < xaxis._offset && y >= 0 && y < yaxis._length
  const place = isBeside ? Math.round(yaxis.p2d(y)) : NaN
  return Number.isInteger(place) ? place : null
}

export default function ({ data, parentElement, setTriggerValue }) {
  let plot = parentElement.querySelector(".plot")
  if (!plot) {
    plot = document.createElement("div")
    plot.className = "plot"
    parentElement.append(plot)
  }
  const figure = JSON.parse(data.figure)
  plot.style.height = `${figure.layout.height}px`
  plot.setAttribute("role", "figure")
  plot.setAttribute("aria-label", data.alt)
  plot.wants = { ranges: data.ranges, points: data.points }
  plot.tell = setTriggerValue
  const configuration = { responsive: false, displaylogo: false, displayModeBar: "hover", doubleClick: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d", "pan2d", "toImage"] }
  let gone = false
  const draw = () => load(data.source).then((Plotly) => {
    if (gone) return
    if (plot._dragging) { // a tick must not take the chart away from under the hand
      setTimeout(draw, 100)
      return
    }
    const layout = themed(figure.layout, parentElement)
    const { l = 0, r = 0 } = layout.margin || {}
    const ticks = Math.max(2, Math.floor((plot.offsetWidth - Math.max(80, l + r)) / 62))
    layout.xaxis.nticks = Math.min(layout.xaxis.nticks || ticks, ticks)
    if (plot.zoomed) layout.xaxis.range = plot.layout.xaxis.range.slice()
    plot.home = figure.layout.xaxis.range
    Plotly.react(plot, figure.data, layout, configuration).then(() => watch(Plotly, plot))
  })
  draw()
  const observer = new ResizeObserver(() => {
    if (window.Plotly && plot.data && plot.offsetWidth) window.Plotly.Plots.resize(plot).catch(() => {})
  })
  observer.observe(plot)
  return () => {
    gone = true
    observer.disconnect()
  }
}
