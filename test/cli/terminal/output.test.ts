import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { jsonLine, jsonText, Output, plainText } from '../../../src/cli/terminal/output.js'
import type { Sink } from '../../../src/cli/terminal/terminal.js'
import { NodeError } from '../../../src/kit/errors.js'
import { holds } from '../../support/holds.js'

function sink(isTTY = false): Sink & { text: string } {
  return {
    text: '',
    isTTY,
    write(text) {
      this.text += text
    }
  }
}

function output(
  options: {
    json?: boolean
    color?: 'auto' | 'always' | 'never'
    tty?: boolean
    env?: Record<string, string>
    home?: string
    typed?: string[]
  } = {}
) {
  const [out, err] = [sink(options.tty), sink(options.tty)]
  return {
    out,
    err,
    output: new Output({
      json: options.json ?? false,
      color: options.color ?? 'auto',
      out,
      err,
      env: options.env ?? {},
      home: options.home ?? null,
      typed: options.typed ?? []
    })
  }
}

test('colours need a terminal that wants them, or the flag', (t: Assert) => {
  t.is(output({ tty: true }).output.paint('red', 'x'), '\u001b[31mx\u001b[0m')
  t.is(output().output.paint('red', 'x'), 'x')
  t.is(output({ tty: true, env: { NO_COLOR: '1' } }).output.paint('red', 'x'), 'x')
  t.is(output({ tty: true, env: { NO_COLOR: '' } }).output.paint('red', 'x'), '\u001b[31mx\u001b[0m')
  t.is(output({ tty: true, env: { TERM: 'dumb' } }).output.paint('red', 'x'), 'x')
  t.is(output({ tty: true, color: 'never' }).output.paint('red', 'x'), 'x')
  t.is(output({ color: 'always', env: { NO_COLOR: '1' } }).output.paint('red', 'x'), '\u001b[31mx\u001b[0m')
})

test('an error is one line with its code, and lines with next steps', (t: Assert) => {
  const { output: plain, out, err } = output()
  plain.error(
    new NodeError('AMBIGUOUS_NAME', 'which "gpu"?', {
      data: { candidates: ['gpu-1', 'gpu-2'] },
      next: ['a2a-node peers']
    }).toBody()
  )
  t.is(err.text, 'error: which "gpu"?  [AMBIGUOUS_NAME]\n  one of: gpu-1\n  one of: gpu-2\n  try: a2a-node peers\n')
  t.is(out.text, '')
})

test('an error under --json is one object on stderr', (t: Assert) => {
  const { output: json, out, err } = output({ json: true })
  json.error(new NodeError('PEER_OFFLINE', 'gone').toBody())
  t.alike(JSON.parse(err.text), {
    error: { code: 'PEER_OFFLINE', message: 'gone', retryable: true, next: ['a2a-node peers'] }
  })
  t.is(out.text, '')
})

test('commands to type next carry the home that was typed, as one word of a shell', (t: Assert) => {
  t.is(output({ home: '/tmp/b' }).output.hint('a2a-node start'), 'a2a-node --home /tmp/b start')
  t.is(output({ home: "it's b" }).output.hint('a2a-node start'), "a2a-node --home 'it'\\''s b' start")
  t.is(output({ home: '/b' }).output.hint('kill -9 7'), 'kill -9 7')
  t.is(
    output({ home: '/b' }).output.hint('a2a-node stop && a2a-node doctor --repair'),
    'a2a-node --home /b stop && a2a-node --home /b doctor --repair'
  )
  t.is(
    output({ home: '/b' }).output.hint('X_Y=<a port> TMPDIR=/tmp a2a-node start'),
    'X_Y=<a port> TMPDIR=/tmp a2a-node --home /b start'
  )
  t.is(output({ home: '/b' }).output.hint('a2a-node start --home <new>'), 'a2a-node start --home <new>')
  t.is(output().output.hint('a2a-node start'), 'a2a-node start')
  const [text, json] = [output({ home: '/b' }), output({ home: '/b', json: true })]
  const body = new NodeError('NODE_NOT_RUNNING', 'none').toBody()
  text.output.error(body)
  json.output.error(body)
  t.ok(text.err.text.endsWith('  try: a2a-node --home /b start\n'), text.err.text)
  t.alike((JSON.parse(json.err.text) as { error: { next: string[] } }).error.next, ['a2a-node --home /b start'])
})

test('a step that is an option is this command line with that option, each step once', (t: Assert) => {
  const error = new NodeError('USAGE', 'no', { next: ["--items 'b/**'", 'a2a-node status', 'a2a-node status'] })
  const nextOf = (typed: string[]): readonly string[] => output({ home: '/b', typed }).output.nextOf(error)
  const status = 'a2a-node --home /b status'
  const typed = ['swarm', 'run', 'a goal', '--items', 'b', '--home', '/b', '--', '--items', 'x']
  t.alike(nextOf(typed), ["a2a-node swarm run 'a goal' --home /b --items 'b/**' -- --items x", status])
  t.alike(nextOf(['swarm', '--items=b', '--attach']), ["a2a-node swarm --attach --items 'b/**'", status])
  t.alike(nextOf([]), ["--items 'b/**'", status], 'where the words are not known')
})

test('the faults of a file are printed with their positions, those of other things without', (t: Assert) => {
  const told = (data: object): string[] => {
    const { output: one, err } = output()
    one.error(new NodeError('CONFIG_INVALID', 'm', { data, next: ['x'] }).toBody())
    return err.text.split('\n').slice(1, -2)
  }
  const config = [
    { where: '/c.yaml:2', line: 2, key: 'nod', reason: 'no such section' },
    { where: 'A2A_X', line: null, key: 'x', reason: 'no' }
  ]
  t.alike(told({ faults: config }), ['  /c.yaml:2: nod: no such section', '  A2A_X: x: no'])
  const agents = [1, 2].map((line) => ({ file: '/a.md', line, reason: 'name is missing' }))
  t.alike(told({ faults: agents }), ['  /a.md:1: name is missing', '  /a.md:2: name is missing'])
  const plan = [2, 3].map((line) => ({ place: `plan.yaml:${line}`, reason: 'id is missing' }))
  t.alike(told({ faults: plan, moreFaults: 1 }), [
    '  plan.yaml:2: id is missing',
    '  plan.yaml:3: id is missing',
    '  and 1 more'
  ])
  t.alike(
    told({
      file: '/p.yaml',
      faults: [
        { line: 1, reason: 'a' },
        { line: null, reason: 'b' }
      ],
      moreFaults: 3
    }),
    ['  /p.yaml:1: a', '  /p.yaml: b', '  and 3 more']
  )
  t.alike(
    told({
      faults: [
        { path: '', message: 'a' },
        { path: '/b', message: 'c' }
      ]
    }),
    []
  )
})

test('JSON never carries a character that a terminal obeys, and stays the same value', async (t: Assert) => {
  const nasty = fc.string({
    unit: fc.constantFrom(
      'a',
      '\u0000',
      '\u001b',
      '\u007f',
      '\u0085',
      '\u009b',
      '\u202e',
      '\u2066',
      '\n',
      '"',
      '\\',
      'é'
    ),
    maxLength: 20
  })
  await holds(
    t,
    fc.property(fc.dictionary(nasty, nasty, { maxKeys: 4, noNullPrototype: true }), (value) => {
      for (const text of [jsonLine(value), jsonText(value)]) {
        if (/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(text.replaceAll('\n', ''))) return false
        if (JSON.stringify(JSON.parse(text)) !== JSON.stringify(value)) return false
      }
      return !jsonLine(value).includes('\n')
    }),
    300
  )
})

test('text of others keeps its lines and loses its escapes', (t: Assert) => {
  t.is(plainText('one\n\u001b[31mtwo\u001b[0m\r\n\tthree'), 'one\n[31mtwo[0m\n    three')
})

test('bytes are shown as base64', (t: Assert) => {
  t.is(jsonLine({ data: new Uint8Array([1, 2]) }), '{"data":{"$bytes":"AQI="}}')
})

test('a terminal that says it has no columns has an unknown width', (t: Assert) => {
  const widthOf = (columns: number | undefined): number | null => {
    const out = { ...sink(true), columns }
    return new Output({ json: false, color: 'auto', out, err: out, env: {} }).width
  }
  t.alike([0, undefined, 100].map(widthOf), [null, null, 100])
})

test('contents end with one line break on a terminal, and are unchanged elsewhere', (t: Assert) => {
  for (const isTTY of [true, false])
    for (const contents of ['milk', 'milk\n', 'milk\n\n', 'a\nb', '']) {
      let written = ''
      const place = { isTTY, write: (text: string | Uint8Array): void => void (written += String(text)) }
      new Output({ json: false, color: 'never', out: place, err: place, env: {} }).contents(contents)
      t.is(written, isTTY ? `${contents.replace(/\n$/, '')}\n` : contents, JSON.stringify(contents))
    }
})
