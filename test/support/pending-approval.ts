import type { ApprovalInfo } from '../../src/ports/policy-api.js'

/** A pending approval: `operator@phone` asks `shell@laptop` to run a program. */
export const PENDING_APPROVAL: ApprovalInfo = {
  id: 'app_1234567890',
  from: 'operator@phone',
  fromNode: { id: 'k7f2'.padEnd(52, 'y'), name: 'phone' },
  to: 'shell@laptop',
  toNode: { id: 'x4m1'.padEnd(52, 'y'), name: 'laptop' },
  fromTier: 'L2',
  type: 'request',
  capability: 'shell.run',
  sideEffect: 'exec',
  description: '',
  justification: null,
  input: '{"command":"ls"}',
  cut: [],
  rule: 'policy.yaml:12: ask',
  askedAt: '2026-01-02T03:04:05.000Z',
  expiresAt: '2026-01-02T03:09:05.000Z',
  endsBy: 'node'
}
