import test, { type Assert } from 'brittle'
import { MessageProgress, type ProgressLevel } from '../../../src/cli/terminal/message-progress.js'
import { Output } from '../../../src/cli/terminal/output.js'

class Sink {
  text = ''
  readonly columns = 40
  readonly rows = 24
  constructor(readonly isTTY: boolean) {}
  write(part: string | Uint8Array): void {
    this.text += String(part)
  }
}

const at = { agent: 'writer@desk', taskId: 'task_1' } as const
const nothing = { progress: null, total: null, message: null } as const
const EVENTS = [
  { type: 'waiting', waitingFor: 'slot', ...at },
  { type: 'waiting', waitingFor: 'approval', ...at },
  { type: 'waiting', waitingFor: null, ...at },
  { type: 'progress', ...at, progress: 3, total: 10, message: 'reading\u001b[2J' },
  { type: 'progress', ...at, ...nothing, message: '{"token":"Dear"}', text: 'Dear\nreader, ' },
  { type: 'progress', ...at, ...nothing, message: '{"token":"."}', text: 'all is\u001b[2J well' }
] as const

/** The output on stdout and stderr of one message with these events. */
function shownOf(level: ProgressLevel, { isTTY = false, json = false } = {}): { out: Sink; err: Sink } {
  const [out, err] = [new Sink(isTTY), new Sink(isTTY)]
  const progress = new MessageProgress(new Output({ json, color: 'never', out, err, env: {} }), level)
  for (const event of EVENTS) progress.take(event)
  progress.close()
  return { out, err }
}

test('without a terminal progress is plain lines on stderr: waits, reports, and each line of text once it is complete', (t: Assert) => {
  const { out, err } = shownOf('all')
  t.is(out.text, '')
  t.alike(err.text.split('\n'), [
    'writer@desk  waiting for a free slot',
    'waiting for approval of writer on desk',
    'writer@desk  working',
    'writer@desk  3 of 10  reading[2J',
    'Dear',
    'reader, all is[2J well',
    ''
  ])
})

test('without a terminal a line of text without an end is shown in parts, so that it does not grow without a bound', (t: Assert) => {
  const err = new Sink(false)
  const progress = new MessageProgress(new Output({ json: false, color: 'never', out: err, err, env: {} }), 'all')
  for (let i = 0; i < 100; i++) {
    progress.take({ type: 'progress', ...at, ...nothing, text: 'x'.repeat(1024) })
    t.ok(err.text.length > i * 1024 - 16 * 1024, 'at most 16 Ki characters wait')
  }
  progress.close()
  t.is(err.text.replaceAll('\n', '').length, 100 * 1024)
})

test('only the need of an approval is shown where nothing is followed, and nothing at all when quiet', (t: Assert) => {
  t.is(shownOf('needed').err.text, 'waiting for approval of writer on desk\n')
  t.is(shownOf('needed', { json: true }).err.text, 'waiting for approval of writer on desk\n')
  for (const options of [{}, { isTTY: true }, { json: true }]) {
    const { out, err } = shownOf('quiet', options)
    t.alike([out.text, err.text], ['', ''])
  }
})

test('with JSON each event is a line of JSON on stderr, and stdout stays free for the reply', (t: Assert) => {
  const { out, err } = shownOf('all', { json: true })
  t.is(out.text, '')
  t.alike(
    err.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
    [...EVENTS]
  )
})

test('on a terminal the newest lines of the text are drawn in place, and removed at the end', (t: Assert) => {
  const { out, err } = shownOf('all', { isTTY: true })
  t.is(out.text, '')
  t.ok(err.text.includes('writer@desk  working  0 ms  3 of 10'), err.text)
  t.ok(err.text.includes('\nDear\nreader, all is[2J well\n'), err.text)
  t.ok(err.text.endsWith('A\r\u001b[0J'), 'the drawn part is cleared')
  const long = new Sink(true)
  const progress = new MessageProgress(
    new Output({ json: false, color: 'never', out: long, err: long, env: {} }),
    'all'
  )
  const text = Array.from({ length: 100 }, (_, i) => `line ${i} ${'x'.repeat(60)}`).join('\n')
  progress.take({ type: 'progress', ...at, ...nothing, text })
  progress.close()
  t.ok(long.text.includes('line 99') && !long.text.includes('line 90 '), 'the last lines')
  t.ok(
    long.text.split('\n').every((line) => line.length <= 50),
    'no drawn line is wider than the terminal'
  )
})
