/** Lines around a change. */
const CONTEXT = 3
/** Displayed characters of a line. */
const LINE_SHOWN = 2000
const NO_BREAK = '\\ No newline at end of file'

/**
 * The change of a file as a unified diff of one hunk, without a line break at its end; '' for none. `before` is null
 * for a file that is new. Lines that are longer than 2,000 characters are cut.
 */
export function unifiedDiff(file: string, before: string | null, after: string): string {
  if ((before ?? '') === after) return ''
  const [old, now] = [linesOf(before ?? ''), linesOf(after)]
  const same = Math.min(old.length, now.length)
  let head = 0
  while (head < same && old[head] === now[head]) head++
  let tail = 0
  while (tail < same - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++
  const from = Math.max(0, head - CONTEXT)
  const [oldEnd, nowEnd] = [old.length - tail, now.length - tail]
  const kept = Math.min(tail, CONTEXT)
  return [
    before === null ? '--- /dev/null' : `--- ${file}`,
    `+++ ${file}`,
    `@@ -${range(from, oldEnd + kept)} +${range(from, nowEnd + kept)} @@`,
    ...marked(' ', old.slice(from, head)),
    ...marked('-', old.slice(head, oldEnd)),
    ...marked('+', now.slice(head, nowEnd)),
    ...marked(' ', old.slice(oldEnd, oldEnd + kept))
  ].join('\n')
}

/** Lines with their line breaks. */
function linesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\n)/)
}

function marked(mark: string, lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const text = line.endsWith('\n') ? line.slice(0, -1) : line
    const shown = mark + (text.length > LINE_SHOWN ? `${text.slice(0, LINE_SHOWN)}…` : text)
    return line.endsWith('\n') ? [shown] : [shown, NO_BREAK]
  })
}

function range(start: number, end: number): string {
  const count = end - start
  return `${count === 0 ? start : start + 1},${count}`
}
