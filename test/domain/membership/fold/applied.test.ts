import test, { type Assert } from 'brittle'
import { canonicalJson } from '../../../../src/kit/json.js'
import { isApplied } from '../../../../src/domain/membership/fold/applied.js'
import { SNAPSHOT_BLOCKS } from '../../../../src/domain/membership/fold/document.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { EMPTY_VIEW } from '../../../../src/domain/membership/view.js'
import { snapshotBody } from '../../../support/document-entries.js'
import {
  actor,
  admission,
  cardBody,
  founded,
  inviteTerms,
  keyText,
  LogModel,
  MESH,
  SETTINGS,
  ACCESS
} from '../../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')

test('each entry counts as applied once the view shows it, and not before', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a')
  const steps: (() => unknown)[] = [
    () => log.invite(owner, terms),
    () => log.admit(owner, ann, terms),
    () => log.recertify(owner, { ...log.certificateOf(ann), serial: 2, name: 'anna' }),
    () => log.card(ann, cardBody('host')),
    () => log.uncard(ann, 'host', 1),
    () => log.write(owner, { kind: 'invite-revoked', mesh: MESH, inviteId: terms.id, at: 1 }),
    () => log.write(owner, { kind: 'settings', mesh: MESH, settings: SETTINGS, serial: 1, at: 1 }),
    () => log.write(ann, { kind: 'trust', mesh: MESH, nodeKey: owner.id, trust: 'mine', serial: 1, at: 1 }),
    () => log.write(ann, { kind: 'core', mesh: MESH, coreKey: keyText('core/again'), serial: 1 }),
    () => log.write(ann, { kind: 'document', mesh: MESH, name: 'notes', access: null, at: 1 }),
    () => log.write(ann, { kind: 'document-stream', mesh: MESH, name: 'notes', coreKey: keyText('s') }),
    () => log.write(ann, snapshotBody({ core: 'snapshot', lengths: { s: SNAPSHOT_BLOCKS } })),
    () => log.write(ann, { kind: 'document-access', mesh: MESH, name: 'notes', access: ACCESS, lengths: {} }),
    () => log.write(ann, { kind: 'document', mesh: MESH, name: 'gone', access: null, at: 1 }),
    () => log.write(ann, { kind: 'document-removed', mesh: MESH, name: 'gone', at: 2 }),
    () => log.revoke(owner, ann)
  ]
  for (const step of steps) {
    const before = log.view()
    step()
    const entry = log.entries.at(-1)?.entry
    if (entry === undefined) throw new Error('no entry')
    t.absent(isApplied(before, entry), `before: ${entry.body.kind}`)
    t.ok(isApplied(log.view(), entry), `after: ${entry.body.kind}`)
  }
  const founding = new LogModel()
  founding.found()
  const entry = founding.entries[0]?.entry
  t.absent(entry === undefined || isApplied(EMPTY_VIEW, entry))
  t.ok(entry !== undefined && isApplied(founding.view(), entry))
})

test('a refused admission is decided, but an older refusal says nothing of a new attempt', (t: Assert) => {
  const log = founded()
  const used = log.join(owner, actor('first'))
  log.admit(owner, ann, used)
  const next = inviteTerms('next', { createdAt: 9000 })
  t.ok(isApplied(log.view(), seal('entry', admission(owner, ann, { terms: used }), owner)))
  t.absent(isApplied(log.view(), seal('entry', admission(owner, ann, { terms: next }), owner)))
})

test('a snapshot of a document counts as applied once one with as much content is in force, of any writer', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  log.write(ann, { kind: 'document', mesh: MESH, name: 'notes', access: null, at: 1 })
  for (const stream of ['s', 'r'])
    log.write(ann, { kind: 'document-stream', mesh: MESH, name: 'notes', coreKey: keyText(stream) })
  const entry = (lengths: Record<string, number>) =>
    seal('entry', snapshotBody({ core: `of ${canonicalJson(lengths)}`, lengths }), ann)
  t.absent(isApplied(EMPTY_VIEW, entry({ s: SNAPSHOT_BLOCKS })), 'nobody knows the document yet')
  t.absent(isApplied(log.view(), entry({ s: SNAPSHOT_BLOCKS })))
  log.write(owner, snapshotBody({ core: 'of the owner', lengths: { s: 2000, r: 10 } }))
  t.ok(isApplied(log.view(), entry({ s: SNAPSHOT_BLOCKS })), 'another one holds more')
  t.ok(
    isApplied(log.view(), entry({ s: 2000 + SNAPSHOT_BLOCKS, r: 9 })),
    'it would take back some of the content in force'
  )
  t.ok(isApplied(log.view(), entry({ s: 2000 + SNAPSHOT_BLOCKS - 1, r: 10 })), 'one block too few')
  t.absent(isApplied(log.view(), entry({ s: 2000, r: 10 + SNAPSHOT_BLOCKS })))
})

test('a removal supersedes every entry of its document, and none of another document', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  for (const name of ['notes', 'other']) log.write(ann, { kind: 'document', mesh: MESH, name, access: null, at: 1 })
  log.write(ann, { kind: 'document-removed', mesh: MESH, name: 'notes', at: 2 })
  const entries = (name: string): EntryBody[] => [
    { kind: 'document', mesh: MESH, name, access: null, at: 3 },
    { kind: 'document-access', mesh: MESH, name, access: ACCESS, lengths: {} },
    { kind: 'document-stream', mesh: MESH, name, coreKey: keyText('s') },
    { ...snapshotBody({ core: 'x', lengths: { s: SNAPSHOT_BLOCKS } }), name },
    { kind: 'document-removed', mesh: MESH, name, at: 3 }
  ]
  t.ok(entries('notes').every((body) => isApplied(log.view(), seal('entry', body, ann))))
  t.alike(
    entries('other').map((body) => isApplied(log.view(), seal('entry', body, ann))),
    [true, false, false, false, false]
  )
})
