// A dialog takes the focus itself when it opens, where what is typed is lost: the box gets it.
export default function ({ parentElement, data }) {
  if (parentElement.dataset.mark === data.mark) return
  const box = parentElement.closest("[role=dialog]")?.querySelector(`.st-key-${data.box} input`)
  if (!box) return
  parentElement.dataset.mark = data.mark
  box.focus()
}
