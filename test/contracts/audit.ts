import test from 'brittle'
import type { Assert } from 'brittle'
import type { Audit, AuditEvent } from '../../src/ports/audit.js'

/** An audit log under test: how much it holds, and its successor on the same place. */
export interface AuditSubject {
  readonly audit: Audit
  /** The events on record, in order, as far as the subject tells. */
  readonly recorded: () => Promise<readonly AuditEvent[]>
  readonly reopen: () => Promise<Audit>
}

/** What every Audit keeps. */
export function auditContract(name: string, open: (t: Assert) => Promise<AuditSubject>): void {
  const events: AuditEvent[] = [
    {
      kind: 'refusal',
      code: 'TIER_VIOLATION',
      rule: 'tier: L1 may open to L0, L1',
      reason: 'L1 to L2',
      peer: 'p1',
      sender: 'a@p1'
    },
    { kind: 'membership', code: 'revoked', peer: 'p2' },
    { kind: 'strike', code: 'malformed', peer: 'p1' }
  ]

  test(`${name}: after a flush every event is on record, in the order of the calls`, async (t) => {
    const { audit, recorded } = await open(t)
    for (const event of events) audit.append(event)
    await audit.flush()
    t.alike(
      (await recorded()).map(({ kind, code }) => `${kind} ${code}`),
      ['refusal TIER_VIOLATION', 'membership revoked', 'strike malformed']
    )
    t.is((await recorded())[0]?.rule, 'tier: L1 may open to L0, L1')
  })

  test(`${name}: closing puts the rest on record, and may be done twice`, async (t) => {
    const { audit, recorded } = await open(t)
    for (const event of events) audit.append(event)
    await audit.close()
    await audit.close()
    t.is((await recorded()).length, 3)
  })

  test(`${name}: the next start goes on behind what is there`, async (t) => {
    const { audit, recorded, reopen } = await open(t)
    audit.append({ kind: 'control', code: 'first' })
    await audit.close()
    const next = await reopen()
    next.append({ kind: 'control', code: 'second' })
    await next.flush()
    t.alike(
      (await recorded()).map(({ code }) => code),
      ['first', 'second']
    )
  })

  test(`${name}: appending never throws, not even after the end`, async (t) => {
    const { audit } = await open(t)
    await audit.close()
    await t.execution(() => audit.append({ kind: 'control', code: 'late' }))
  })
}
