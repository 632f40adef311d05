import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { keptCard, readRemoteCard } from '../../../../src/adapters/a2a/remote/remote-card.js'
import { RemoteFault } from '../../../../src/adapters/a2a/remote/remote-fault.js'
import { fromSdkPart, remoteInput, toSdkPart } from '../../../../src/adapters/a2a/remote/remote-parts.js'
import { remoteOffer, skillCapability } from '../../../../src/adapters/a2a/remote/remote-skills.js'
import { RemoteTask, type RemoteEvent } from '../../../../src/adapters/a2a/remote/remote-task.js'
import { capabilityIdSchema, validateCard } from '../../../../src/domain/card/schema.js'
import { inputOf } from '../../../../src/domain/gateway/content.js'
import type { Artifact, Part } from '../../../../src/domain/gateway/message.js'
import { canonicalJson } from '../../../../src/kit/json.js'
import { remoteSpec } from '../../../support/a2a/remote-scene.js'
import { holds } from '../../../support/holds.js'

/** Text that nobody would read as the JSON of an object. */
const text = fc.string({ maxLength: 40 }).filter((one) => !one.trimStart().startsWith('{'))
const json = fc
  .jsonValue({ maxDepth: 3 })
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll('__proto__', 'x')) as unknown)
const file = fc.record(
  {
    bytes: fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('base64')),
    filename: fc.constantFrom('a.txt', 'b'),
    mediaType: fc.constant('text/plain')
  },
  { requiredKeys: ['bytes'] }
)
const input = fc.oneof(
  fc.record({ text }),
  fc.record({ text, data: fc.array(json, { minLength: 1, maxLength: 3 }) }),
  fc.record({ text, files: fc.array(file, { minLength: 1, maxLength: 3 }) }),
  fc.record({ data: fc.array(json, { maxLength: 3 }), files: fc.array(file, { maxLength: 2 }) }, { requiredKeys: [] }),
  fc.dictionary(fc.constantFrom('text', 'data', 'files', 'n', 'x'), json)
)

test('the input of an agent leaves the gateway of another node as it came in', async (t: Assert) => {
  await holds(
    t,
    fc.property(input, (value) => {
      const parts = remoteInput(value).parts.map((one) => fromSdkPart(toSdkPart(one)) as Part)
      const only = value as { text?: unknown }
      // A text that is JSON is read as JSON everywhere.
      if (typeof only.text === 'string' && only.text.trimStart().startsWith('{')) return true
      return canonicalJson(inputOf(parts)) === canonicalJson(value)
    }),
    1000
  )
})

test('the task and conversation that an input names are not part of the message', (t: Assert) => {
  t.alike(remoteInput({ a2a: { taskId: 't', contextId: 'c' }, text: 'yes' }), {
    parts: [{ text: 'yes' }],
    taskId: 't',
    contextId: 'c'
  })
  t.alike(remoteInput({ a2a: { taskId: 7 }, n: 1 }), {
    parts: [{ data: { n: 1 }, mediaType: 'application/json' }],
    taskId: null,
    contextId: null
  })
})

test('no JSON makes the reader of cards throw; an accepted card is stored, reads back unchanged, and makes a valid card of the mesh', async (t: Assert) => {
  const word = fc.oneof(
    fc.string({ maxLength: 30 }),
    fc.constantFrom('\u0000', '\u001b[31m', '   ', 'ö'.repeat(40), 'a b')
  )
  const skill = fc.record({
    id: word,
    name: word,
    description: word,
    tags: fc.array(word, { maxLength: 3 }),
    examples: fc.array(word, { maxLength: 2 })
  })
  const value = fc.oneof(
    json,
    fc.record({
      name: word,
      description: word,
      version: word,
      supportedInterfaces: fc.array(
        fc.record({
          url: fc.webUrl(),
          protocolBinding: fc.constantFrom('JSONRPC', 'HTTP+JSON', 'GRPC'),
          protocolVersion: fc.constantFrom('1.0', '0.3', '2.0')
        }),
        { maxLength: 3 }
      ),
      skills: fc.array(skill, { maxLength: 4 })
    }),
    fc.record({
      name: word,
      url: fc.webUrl(),
      protocolVersion: fc.constantFrom('0.3.0', '0.2'),
      skills: fc.array(skill, { maxLength: 3 })
    })
  )
  let taken = 0
  await holds(
    t,
    fc.property(value, (one) => {
      const read = readRemoteCard(one)
      if (!read.ok) return read.reason !== ''
      taken++
      const { definition } = remoteOffer(remoteSpec('http://x.example.com'), read.card, read.card.skills)
      const { id, name, version, description, capabilities } = definition
      const checked = validateCard({
        id,
        name,
        version,
        description,
        capabilities,
        tier: 1,
        protocols: [],
        endpoints: [],
        revision: 1
      })
      // The provider is stored beside the card.
      const { provider: _, ...stored } = read.card
      return checked.ok && canonicalJson(keptCard(JSON.parse(JSON.stringify(stored)))) === canonicalJson(stored)
    }),
    1000
  )
  t.ok(taken > 100, `${taken} were taken`)
})

test('every skill has an id that capabilities may have, and two skills never share one by chance', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.string({ minLength: 1, maxLength: 256 }), fc.string({ minLength: 1, maxLength: 256 }), (a, b) => {
      const [one, other] = [skillCapability(a), skillCapability(b)]
      return capabilityIdSchema.safeParse(one).success && one.length <= 128 && (a === b) === (one === other)
    }),
    500
  )
})

test('a task in chunks, or as a whole and again, reports its artifact once, as the result', async (t: Assert) => {
  const pieces = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 6 })
  await holds(
    t,
    fc.property(pieces, fc.array(fc.nat(6), { maxLength: 4 }), (words, snapshots) => {
      const reports: { a2a: { artifact: { parts: { text: string }[] }; append: boolean } }[] = []
      const task = new RemoteTask({
        maxBytes: 100_000,
        report: (data) => void reports.push(data as never),
        isFurther: false
      })
      const parts = (n: number): Part[] => words.slice(0, n).map((one) => ({ text: one }))
      const whole = (n: number, state: 'working' | 'completed'): RemoteEvent => ({
        type: 'task',
        taskId: 't',
        contextId: 'c',
        state,
        message: null,
        artifacts: n === 0 ? [] : [{ artifactId: 'a', parts: parts(n) }]
      })
      words.forEach((word, i) => {
        task.take({
          type: 'artifact',
          taskId: 't',
          artifact: { artifactId: 'a', parts: [{ text: word }] },
          append: i > 0,
          lastChunk: false
        })
        if (snapshots.includes(i)) task.take(whole(i + 1, 'working'))
      })
      task.take(whole(words.length, 'completed'))
      const outcome = task.outcome('x')
      const told = reports.flatMap(({ a2a }) => a2a.artifact.parts.map((one) => one.text)).join('')
      return (
        task.isOver &&
        outcome.ok &&
        outcome.result === words.join('') &&
        told === words.join('') &&
        reports.slice(1).every(({ a2a }) => a2a.append)
      )
    }),
    300
  )
})

test('an artifact may come in thousands of pieces, of which empty parts count as well', (t: Assert) => {
  const parts = Array.from({ length: 64 }, () => ({ text: '' }))
  const told = (maxBytes: number, pieces: number): RemoteTask => {
    const task = new RemoteTask({ maxBytes, report: () => {}, isFurther: false })
    const artifact = { artifactId: 'a', parts }
    for (let i = 0; i < pieces; i++)
      task.take({ type: 'artifact', taskId: 't', artifact, append: true, lastChunk: false })
    return task
  }
  t.absent(told(100_000_000, 4000).isOver)
  void t.exception(() => told(64 * 40 * 10, 11), /more than 25600 bytes/)
})

test('no report of an agent makes its task throw any other error than its fault: infinite numbers, and deep nesting', (t: Assert) => {
  const endless = JSON.parse('{"n":1e999}') as object
  const deep = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) as unknown
  const artifact = (data: unknown): Artifact => ({ artifactId: 'a', parts: [{ data }] })
  const about = { type: 'task', taskId: 't', contextId: 'c', state: 'working' } as const
  const events = (data: unknown): RemoteEvent[] => [
    { type: 'artifact', taskId: 't', artifact: artifact(data), append: false, lastChunk: false },
    { ...about, message: { id: '', parts: [{ data }] }, artifacts: [artifact(data)] },
    {
      ...about,
      message: { id: '', parts: [{ data }] },
      artifacts: [{ artifactId: 'a', parts: [{ data }, { text: 'x' }] }]
    },
    { ...about, type: 'status', state: 'failed', message: { id: '', parts: [{ data }] } }
  ]
  const task = new RemoteTask({ maxBytes: 1_000_000, report: () => {}, isFurther: false })
  for (const event of events(endless)) task.take(event)
  const outcome = task.outcome('far')
  t.ok(!outcome.ok && outcome.message.includes('"n":null'), JSON.stringify(outcome))
  for (const event of events(deep)) {
    const other = new RemoteTask({ maxBytes: 1_000_000, report: () => {}, isFurther: false })
    try {
      other.take(event)
      other.outcome('far')
    } catch (error) {
      t.ok(error instanceof RemoteFault, String(error))
    }
  }
})
