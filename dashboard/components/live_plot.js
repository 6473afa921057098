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
    annotations: (layout.annotations || []).map((note) => ({ ...note, font: { ...note.font, color: text } })),
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
  }
}

// A moving range would undo the zoom at every tick: what the reader chose stays until a double click.
function watchZoom(Plotly, plot) {
  if (plot.watched) return
  plot.watched = true
  plot.on("plotly_relayout", (change) => {
    if ("xaxis.range[0]" in change) plot.zoomed = true
  })
  plot.on("plotly_doubleclick", () => {
    plot.zoomed = false
    Plotly.relayout(plot, { "xaxis.range": plot.home.slice() })
  })
}

export default function ({ data, parentElement }) {
  let plot = parentElement.querySelector(".plot")
  if (!plot) {
    plot = document.createElement("div")
    plot.className = "plot"
    parentElement.append(plot)
  }
  const figure = JSON.parse(data.figure)
  plot.style.height = `${figure.layout.height}px`
  plot.setAttribute("role", "img")
  plot.setAttribute("aria-label", data.alt)
  const configuration = { responsive: false, displaylogo: false, displayModeBar: "hover", doubleClick: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d", "pan2d", "toImage"] }
  let gone = false
  const draw = () => load(data.source).then((Plotly) => {
    if (gone) return
    const layout = themed(figure.layout, parentElement)
    const ticks = Math.max(2, Math.floor((plot.offsetWidth - 80) / 62))
    layout.xaxis.nticks = Math.min(layout.xaxis.nticks || ticks, ticks)
    if (plot.zoomed) layout.xaxis.range = plot.layout.xaxis.range.slice()
    plot.home = figure.layout.xaxis.range
    Plotly.react(plot, figure.data, layout, configuration).then(() => watchZoom(Plotly, plot))
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
