import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import type { DocumentRecord, MembershipView } from '../../../src/domain/membership/types.js'
import { Forks } from '../../../src/node/documents/forks.js'
import { NodeEvents } from '../../../src/node/observe/events.js'
import { FakeAudit } from '../../support/fake-node.js'
import { FakeLog } from '../../support/fake-log.js'
import { ManualClock } from '../../support/manual-clock.js'
import { actor, founded } from '../../support/membership.js'

const owner = actor('owner')
const writer = actor('writer')

function documentOf(streams: DocumentRecord['streams']): DocumentRecord {
  return { name: 'plan', creator: owner.id, createdAt: 0, access: null, streams }
}

/** Forks at the owner, of a log whose documents a test may change. */
function scene(streams: DocumentRecord['streams']): {
  readonly forks: Forks
  readonly audit: FakeAudit
  readonly events: NodeEvents
  readonly lines: string[]
  set(next: DocumentRecord['streams']): void
} {
  const model = founded()
  model.join(owner, writer, { tier: 1 })
  let documents = [documentOf(streams)]
  const log = new FakeLog(model).of(owner)
  const view = (): MembershipView => ({ ...model.view(), documents: new Map(documents.map((one) => [one.name, one])) })
  const audit = new FakeAudit()
  const clock = new ManualClock()
  const lines: string[] = []
  const telemetry = new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: (line) => lines.push(line) })
  const events = new NodeEvents(clock, telemetry)
  return {
    forks: new Forks({ audit, events, telemetry, log: { ...log, view }, self: owner.id }),
    audit,
    events,
    lines,
    set: (next) => {
      documents = [documentOf(next)]
    }
  }
}

test('a fork is on record once, with its member, and a problem until the member has another stream', (t) => {
  const { forks, audit, set } = scene([{ nodeKey: writer.id, coreKey: 'first' }])
  t.alike([forks.has('first'), forks.problems()], [false, []])
  forks.add('first')
  forks.add('first')
  t.ok(forks.has('first'))
  t.alike(
    audit.all.map(({ kind, code, peer, ref }) => ({ kind, code, peer, ref })),
    [{ kind: 'strike', code: 'CONFLICT', peer: writer.id, ref: 'document-fork/first' }]
  )
  t.alike(
    forks.problems().map(({ code, next }) => [code, next]),
    [['CONFLICT', `a2a-node peers revoke ${writer.id}`]]
  )
  set([
    { nodeKey: writer.id, coreKey: 'first' },
    { nodeKey: writer.id, coreKey: 'second' }
  ])
  t.alike(forks.problems(), [])
})

test('the owner of the mesh gets the advice to check its home, not to revoke itself', (t) => {
  const { forks } = scene([{ nodeKey: owner.id, coreKey: 'own' }])
  forks.add('own')
  const [problem] = forks.problems()
  t.ok(problem?.next?.startsWith('a2a-node doctor'))
})

test('a stream that no document names is forked, and nobody is blamed for it', (t) => {
  const { forks, audit } = scene([])
  forks.add('unknown')
  t.alike([forks.has('unknown'), forks.problems(), audit.all], [true, [], []])
})

test('a stop is logged and added to the events with the member of its stream, or with none for an unknown stream', (t) => {
  const { forks, events, lines } = scene([{ nodeKey: writer.id, coreKey: 'first' }])
  for (const stream of ['first', 'unknown'])
    forks.reportStop('plan', { stream, at: 3, reason: 'bad bytes', needsRebuild: false })
  t.alike(
    events.recent().map(({ data }) => [data['source'], data['stream'], data['at']]),
    [
      [writer.id, 'first', 3],
      [null, 'unknown', 3]
    ]
  )
  t.is(lines.filter((line) => line.includes('updates of a document are skipped')).length, 2)
})
