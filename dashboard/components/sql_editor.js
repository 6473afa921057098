// A T-SQL editor (CodeMirror) with a run button: what is selected runs, else all. Tab leaves it, as WCAG wants.
const modules = {}
const LOST = "This is a new session: the connection to the server was lost for long, or the server was started " +
  "anew. A transaction that was open has been rolled back, a statement that ran was cancelled. Look at the data " +
  "before you run anything again."

// The sessions that this browser tab has had, by database: they end with it at once, not after a while as they
// would where the connection is lost.
const sessions = new Map()

addEventListener("pagehide", (event) => {
  if (!event.persisted) for (const { leave } of sessions.values()) navigator.sendBeacon(leave)
})

function load(source) {
  modules[source] = modules[source] || import(new URL(source, document.baseURI).href)
  return modules[source]
}

function themed(cm) {
  const t = cm.tags
  const colours = cm.HighlightStyle.define([
    { tag: [t.keyword, t.operatorKeyword], color: "var(--st-blue-text-color, #2a5fbe)" },
    { tag: [t.string, t.special(t.string)], color: "var(--st-green-text-color, #12713f)" },
    { tag: [t.number, t.bool, t.null], color: "var(--st-orange-text-color, #a04a00)" },
    { tag: t.comment, color: "var(--st-gray-text-color, #6b737c)", fontStyle: "italic" },
    { tag: [t.typeName, t.standard(t.name)], color: "var(--st-violet-text-color, #7a3fa0)" },
  ])
  const theme = cm.EditorView.theme({
    "&": { color: "var(--st-text-color)", backgroundColor: "var(--st-secondary-background-color)",
      height: "100%", fontSize: "0.92rem" },
    "&.cm-focused": { outline: "2px solid var(--st-primary-color)" },
    ".cm-scroller": { fontFamily: "var(--st-code-font, monospace)", lineHeight: "1.5" },
    ".cm-content": { caretColor: "var(--st-text-color)" },
    ".cm-cursor": { borderLeftColor: "var(--st-text-color)" },
    ".cm-gutters": { color: "var(--st-gray-text-color, #6b737c)", border: "none",
      backgroundColor: "var(--st-secondary-background-color)" },
    ".cm-selectionBackground, &.cm-focused .cm-selectionBackground":
      { backgroundColor: "color-mix(in srgb, var(--st-primary-color) 30%, transparent) !important" },
    ".cm-tooltip": { color: "var(--st-text-color)", backgroundColor: "var(--st-background-color)",
      border: "1px solid var(--st-border-color)" },
    ".cm-tooltip-autocomplete ul li[aria-selected]":
      { color: "var(--st-background-color)", backgroundColor: "var(--st-primary-color)" },
    ".cm-panels": { color: "var(--st-text-color)", backgroundColor: "var(--st-background-color)" },
  })
  return [theme, cm.syntaxHighlighting(colours)]
}

function completing(editor) {
  return (context) => {
    const word = context.matchBefore(/[\w.$#@[\]]+/)
    if (!editor.options.length || (!word && !context.explicit)) return null
    return { from: word ? word.from : context.pos, options: editor.options, validFor: /^[\w.$#@[\]]*$/ }
  }
}

// The selection, or all of it; with the line on which it begins, which messages count from.
function chosen(state) {
  const main = state.selection.main
  const whole = main.empty
  const text = whole ? state.doc.toString() : state.sliceDoc(main.from, main.to)
  return { text, line: whole ? 1 : state.doc.lineAt(main.from).number, all: state.doc.toString() }
}

function create(cm, editor, data) {
  const run = () => {
    if (editor.busy) return true
    const wanted = chosen(editor.view.state)
    editor.session.isLost = false
    editor.lost.textContent = ""
    if (wanted.text.trim()) editor.ask({ ...wanted, session: editor.session.session, mark: `${Date.now()}-${Math.random()}` })
    return true
  }
  const changed = cm.EditorView.updateListener.of((update) => {
    if (update.selectionSet || update.docChanged) editor.label()
    if (!update.docChanged) return
    clearTimeout(editor.timer)
    editor.timer = setTimeout(() => editor.keep(update.state.doc.toString()), 700)
  })
  editor.run = run
  editor.view = new cm.EditorView({
    parent: editor.box,
    state: cm.EditorState.create({
      doc: data.text,
      extensions: [
        cm.lineNumbers(), cm.history(), cm.drawSelection(), cm.bracketMatching(), cm.closeBrackets(),
        cm.highlightSelectionMatches(), cm.placeholder("SELECT sys.fn_cdc_get_max_lsn();"),
        cm.sql({ dialect: cm.MSSQL, upperCaseKeywords: true }).language,
        cm.autocompletion({ override: [completing(editor)] }),
        cm.EditorState.tabSize.of(4), ...themed(cm), changed,
        cm.EditorView.contentAttributes.of({ "aria-label": "T-SQL", spellcheck: "false", autocorrect: "off" }),
        cm.keymap.of([
          { key: "Ctrl-Enter", mac: "Cmd-Enter", run, preventDefault: true }, { key: "F5", run, preventDefault: true },
          ...cm.closeBracketsKeymap, ...cm.completionKeymap, ...cm.searchKeymap, ...cm.historyKeymap,
          ...cm.defaultKeymap,
        ]),
      ],
    }),
  })
}

// Asks until it was heard: a request that meets a redraw of the page may be lost, and the mark makes a second
// one harmless.
function ask(editor, wanted) {
  heard(editor)
  editor.wanted = wanted
  let asked = 0
  const send = () => editor.send({ ...wanted, asked: ++asked })
  send()
  editor.asking = setInterval(send, 1500)
}

function heard(editor) {
  clearInterval(editor.asking)
  editor.wanted = undefined
}

// What was asked of a session that is gone is never asked of the next. The server may still wait for this browser
// in the old one, with a transaction open.
function follow(editor, { database, session, leave }) {
  const known = sessions.get(database)
  const isLost = known !== undefined && (known.isLost || known.session !== session)
  if (known && known.session !== session) navigator.sendBeacon(known.leave)
  editor.session = { session, leave, isLost }
  sessions.set(database, editor.session)
  editor.lost.textContent = isLost ? LOST : ""
  if (editor.wanted && editor.wanted.session !== session) heard(editor)
}

// A snippet goes where the cursor is, once.
function insert(editor, wanted) {
  if (!wanted || wanted.mark === editor.inserted) return
  editor.inserted = wanted.mark
  const view = editor.view
  const { from, to } = view.state.selection.main
  const text = (from > view.state.doc.lineAt(from).from ? "\n" : "") + wanted.text
  view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length } })
  view.focus()
}

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".sql-editor")
  const editor = root.editor || (root.editor = { box: root.querySelector(".sql-text"), inserted: data.insert?.mark })
  const button = root.querySelector("button")
  editor.lost = root.querySelector(".sql-lost")
  follow(editor, data)
  // A state, not a trigger: a trigger is lost where Streamlit makes one of two requests.
  editor.ask = (wanted) => ask(editor, wanted)
  editor.send = (wanted) => setStateValue("run", wanted)
  if (data.ran && data.ran === editor.wanted?.mark) heard(editor)
  editor.keep = (text) => setStateValue("text", text)
  editor.busy = data.busy
  editor.options = data.words.map((label) => ({ label, type: label.includes(".") ? "function" : "keyword" }))
  root.dataset.words = editor.options.length
  editor.label = () => {
    const all = !editor.view || editor.view.state.selection.main.empty
    button.textContent = all ? "Run" : "Run selection"
  }
  button.disabled = data.busy
  button.onclick = () => editor.run && editor.run()
  load(data.source).then((cm) => {
    if (root.editor !== editor) return // unmounted while it loaded: the next one has the place
    if (!editor.view) create(cm, editor, data)
    insert(editor, data.insert)
    editor.label()
  })
  return () => {
    clearTimeout(editor.timer)
    clearInterval(editor.asking)
    if (editor.view) editor.view.destroy()
    root.editor = undefined
  }
}
